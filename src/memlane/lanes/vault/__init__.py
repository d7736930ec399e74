"""The vault lane (seed 002): short facts as lines of JSON in one append-only file."""
