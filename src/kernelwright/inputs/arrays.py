"""Conversion of user input to checked tensors, and of seeds to generators."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils import check_random_state, validation
from torch import Tensor

from kernelwright.numerics.sparse_rows import SparseRows

__all__ = ["as_matrix", "generator", "plain", "random_numbers", "seed_of", "validate_data"]


def as_matrix(X: Any) -> Tensor:
    """Return a 2-D array of numbers as a float64 tensor; it is copied only if needed. A sparse one stays sparse."""
    if isinstance(X, SparseRows) or issparse(X):
        return cast(Tensor, X if isinstance(X, SparseRows) else SparseRows.of(X))  # it stands in for a tensor
    if np.ndim(X) != 2:
        raise ValueError(f"Expected a 2-D array of numbers (rows are points). Got shape {np.shape(X)} instead.")
    if torch.is_tensor(X):
        return X if X.is_floating_point() else X.to(torch.float64)
    array = np.asarray(X, dtype=np.float64)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # torch supports neither read-only memory nor negative strides
    return torch.from_numpy(np.ascontiguousarray(array))


def plain(values: Any) -> Any:
    """Return values as NumPy can read them: a tensor is detached and moved to the CPU, anything else is unchanged.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.inputs.arrays import plain
    >>> plain(torch.ones(2, requires_grad=True))
    array([1., 1.], dtype=float32)
    """
    if torch.is_tensor(values):
        values = values.float() if values.dtype == torch.bfloat16 else values  # NumPy has no bfloat16
        return values.numpy(force=values.device.type != "meta")
    if isinstance(values, (list, tuple)) and any(torch.is_tensor(value) for value in values):
        return [plain(value) for value in values]
    return values


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check as :func:`sklearn.utils.validation.validate_data` does, but also accept tensors."""
    try:
        return validation.validate_data(estimator, plain(X), plain(y), **options)
    except OverflowError as error:  # from Python integers, which have no limit
        raise ValueError(f"A number of the input is too large for double precision: {error}.") from error
    except ValueError as error:
        if advice := _advice(str(error), type(estimator).__name__) if hasattr(estimator, "keep") else "":
            raise ValueError(advice) from error
        raise


def _advice(said: str, name: str) -> str:
    """Return what to do about gaps or text in an array for an estimator that takes data frames; "" about other errors.

    Without it, scikit-learn recommends other estimators.
    """
    if said.startswith("Input X contains NaN"):
        return (
            f"Input X contains NaN. {name} understands gaps in a data frame (in arrays, embeddings with the default "
            "kernel do): pass a data frame to fit, or fill in the values."
        )
    if said.startswith("could not convert string to float"):
        return f"{said}. Pass a data frame to fit: its columns of text become categories."
    return ""


def generator(random_state: Any) -> torch.Generator:
    """Return a torch generator from anything scikit-learn takes as ``random_state``; no global state changes."""
    return torch.Generator().manual_seed(seed_of(random_state))


def seed_of(random_state: Any) -> int:
    """Return an integer seed from anything scikit-learn takes as ``random_state``; None gives a new one each time."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31 - 1))
    return int(random_numbers(random_state).randint(2**31 - 1))


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Return NumPy's generator for a ``random_state`` of scikit-learn; None leaves the global one alone."""
    return check_random_state(seed_of(None) if random_state is None else random_state)
