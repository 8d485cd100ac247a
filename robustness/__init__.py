"""Provoked faults, and how the library handles them: see docs/reliability.md."""
