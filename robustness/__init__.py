"""Faults made on purpose, and how the library stands them: see docs/reliability.md."""
