"""Synthetic tables for tests."""

import numpy as np
import pandas as pd

from kernelwright.tables import Table


def text_table(**columns):
    """Return a table as if read from a text file: cells are text or None, and the first row is on line 2."""
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    return Table(frame, "t.csv", np.arange(2, len(frame) + 2))
