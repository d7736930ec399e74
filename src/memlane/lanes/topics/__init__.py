"""The topics lane (seed 000): dated entries in topic files, with an index page and a yearly archive."""
