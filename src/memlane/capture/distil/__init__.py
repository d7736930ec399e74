"""Transcripts in, candidate memories out: what a colleague would want to know of a session. `distil` is the way in."""
