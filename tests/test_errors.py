"""Users can catch errors and warnings by their documented names."""

import numpy as np
import pytest

import kernelwright
from kernelwright import errors


@pytest.mark.parametrize(
    ("name", "parent"),
    [
        ("NumericalError", np.linalg.LinAlgError),
        ("MemoryBudgetError", MemoryError),
        ("WorkerLostError", RuntimeError),
        ("NumericalRepairWarning", UserWarning),
        ("PrecisionWarning", UserWarning),
        ("ExtrapolationWarning", UserWarning),
        ("CollapseWarning", UserWarning),
        ("DependenceWarning", UserWarning),
        ("DistanceMatrixWarning", UserWarning),
    ],
)
def test_each_has_a_public_name_and_a_well_known_parent(name, parent):
    assert getattr(kernelwright, name) is getattr(errors, name)
    assert issubclass(getattr(errors, name), parent)
