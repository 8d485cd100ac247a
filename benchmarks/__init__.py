"""Comparisons with other methods, and times of the parts: see docs/benchmarks.md."""
