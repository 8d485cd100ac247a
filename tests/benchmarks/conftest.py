"""Benchmarks are scripts that find each other in their own folder; so do these tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
