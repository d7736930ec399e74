"""Derived search structures: deleting them loses nothing."""
