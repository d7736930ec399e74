"""The search index, derived from the files: deleting it loses nothing. The room `recall` searches it."""
