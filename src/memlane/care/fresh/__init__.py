"""Whether what memories say about code may still be true.

mentions    which files and symbols a text names
code        those files as they are now
then        those files as they were when something was said
symbols     the text of one symbol in a source file
moves       where code went that is gone from its place
verdicts    fresh, moved, drifted or orphaned

What the code was when a memory was written is in `anchors.jsonl`: memlane.disk.anchors.
"""
