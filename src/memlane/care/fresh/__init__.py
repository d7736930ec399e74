"""Whether what memories say about code may still be true.

mentions    which code a text names
code        that code as it is now; symbols: one symbol's own text
anchors     what it was when the memory was written: `anchors.jsonl`
moves       where it went
verdicts    fresh, drifted, moved, orphaned
"""
