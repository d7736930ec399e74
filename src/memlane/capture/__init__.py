"""Transcripts in, records out: what the assistant said in a session is kept. `messages` is the way in."""
