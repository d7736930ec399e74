"""Remembering what was said in a session: transcripts in, records out. Imports are `exchange`."""
