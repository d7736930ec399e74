"""The words everyone speaks: the values that travel, the errors, text as data. Nothing here touches a disk."""
