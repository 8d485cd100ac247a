"""The border: what a user passed in becomes checked tensors, labels become one-hot rows, seeds generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state, validation
from torch import Tensor

__all__ = ["as_matrix", "generator", "plain", "seed_of", "validate_data"]


def as_matrix(X: Any) -> Tensor:
    """A 2-D array of numbers as a float64 tensor; a copy only where one is needed."""
    if np.ndim(X) != 2:
        raise ValueError(f"Expected a 2-D array of numbers (rows are points). Got shape {np.shape(X)} instead.")
    if torch.is_tensor(X):
        return X if X.is_floating_point() else X.to(torch.float64)
    array = np.asarray(X, dtype=np.float64)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # torch takes neither read-only memory nor negative strides
    return torch.from_numpy(np.ascontiguousarray(array))


def plain(values: Any) -> Any:
    """Values as NumPy reads them: a tensor leaves its graph and its device behind, and all else stays as it is.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.inputs.arrays import plain
    >>> plain(torch.ones(2, requires_grad=True))
    array([1., 1.], dtype=float32)
    """
    if torch.is_tensor(values):
        values = values.float() if values.dtype == torch.bfloat16 else values  # which NumPy does not have
        return values.numpy(force=values.device.type != "meta")
    if isinstance(values, (list, tuple)) and any(torch.is_tensor(value) for value in values):
        return [plain(value) for value in values]
    return values


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check as :func:`sklearn.utils.validation.validate_data` does, and take any tensor for its values."""
    try:
        return validation.validate_data(estimator, plain(X), plain(y), **options)
    except OverflowError as error:  # of whole numbers without end
        raise ValueError(f"A number of the input is too large for double precision: {error}.") from error


def generator(random_state: Any) -> torch.Generator:
    """A torch generator from anything scikit-learn takes as ``random_state``; no global state is touched."""
    return torch.Generator().manual_seed(seed_of(random_state))


def seed_of(random_state: Any) -> int:
    """A whole number from anything scikit-learn takes as ``random_state``; None is another one every time."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))
