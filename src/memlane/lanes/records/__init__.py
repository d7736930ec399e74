"""The records lane (seed 001): one captured message per file, with the content kept whole."""
