"""Shared by benchmarks, robustness tests and documentation: tables, pictures and measurements of a process."""
