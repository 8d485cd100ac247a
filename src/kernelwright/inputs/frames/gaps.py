"""Words that mean a missing value, in files and in cells of text. This needs only the standard library."""

from __future__ import annotations

__all__ = ["MISSING"]

MISSING = {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
MISSING |= {"NULL", "NaN", "None", "n/a", "nan", "null", "?", "NaT"}  # those of pandas, and a question mark
