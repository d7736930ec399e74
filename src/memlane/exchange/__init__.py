"""Memories in and out: importing, exporting, editing by hand, and adopting stores that are already there.

Transcripts of conversations come in through `capture`.
"""
