"""A bank over time: versions, undo, what git knows, and merging branches. Removing for good is `care.forget`."""
