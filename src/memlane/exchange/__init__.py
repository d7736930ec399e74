"""Memories in and out: importing, exporting, editing by hand, and adopting stores that are already there. Conversations
come in through `capture`.
"""
