"""Looking after a bank: is the store sound (doctor), is what it says still true (fresh, review), and removing for good
(forget). Taking back what was done is `history`.
"""
