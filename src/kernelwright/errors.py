"""Errors and warnings that a user may meet. Each has its own name, so that it can be caught."""

from __future__ import annotations

import numpy as np


class NumericalError(np.linalg.LinAlgError):
    """A matrix could not be factorised, even after the largest repair that is allowed."""


class MemoryBudgetError(MemoryError):
    """A job was refused before it started because its matrices would not fit in memory."""


class WorkerLostError(RuntimeError):
    """Workers of a cluster could not hold a chunk of the data; the message says which setting to change."""


class NumericalRepairWarning(UserWarning):
    """A matrix was changed a little so that it could be factorised; the message says by how much."""


class CollapseWarning(UserWarning):
    """Learning ended at the constant predictor: the complexity term outweighed the data, or no row is near another."""


class OverfitWarning(UserWarning):
    """Training rows are predicted almost perfectly, but left-out rows no better than by the class frequencies."""


class CalibrationWarning(UserWarning):
    """Left-out rows are predicted correctly far more often than the probabilities say."""


class ColumnWarning(UserWarning):
    """Columns of a data frame were left out, or can be read in two ways; the message names them and says what to do."""


class DependenceWarning(UserWarning):
    """Neighbouring rows depend on each other, so they were left out in blocks; the message says what to do."""


class DistanceMatrixWarning(UserWarning):
    """A similarity matrix looks like a distance matrix; the message says what to do if it is one."""


class ExtrapolationWarning(UserWarning):
    """Rows far from all training rows are predicted by a linear trend; the message says how many."""


class ModelFileError(ValueError):
    """A file cannot be loaded as a model; the message says what is wrong with it and what to do."""


class PrecisionWarning(UserWarning):
    """Single precision was requested but was not accurate enough, so double was used; the message gives the error."""
