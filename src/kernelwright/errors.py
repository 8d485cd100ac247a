"""Errors and warnings a user may meet, each with a name of its own so that it can be caught."""

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
    """Learning ended at the constant predictor: the complexity term outweighed the data."""


class OverfitWarning(UserWarning):
    """Training rows are told almost without fault, and rows left out no better than by the class frequencies."""


class CalibrationWarning(UserWarning):
    """Rows left out are told right far more often than the probabilities say."""


class DistanceMatrixWarning(UserWarning):
    """A matrix of similarities looks like one of distances; the message says what to do if it is."""


class ModelFileError(ValueError):
    """A file cannot be loaded as a model; the message says what is wrong with it and what to do."""


class PrecisionWarning(UserWarning):
    """Single precision was asked for and was not enough; the message says by how much, and double was used."""
