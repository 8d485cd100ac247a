"""Results in a checkpoint count for the same function, also if another process rounds it differently."""

from dataclasses import dataclass

import numpy as np
import pytest

from kernelwright.storage.fit_folder import FitFolder


@dataclass(frozen=True)
class Found:
    values: np.ndarray
    reach: np.ndarray


EXAMPLE = Found(np.random.default_rng(0).normal(size=(8, 2)), np.array([1.0, -np.inf]))
GIVEN = np.linspace(0.0, 1.0, 7)


@pytest.mark.parametrize(("factor", "same"), [(1.0, True), (1.0 + 1e-10, True), (1.0 + 1e-4, False), (-1.0, False)])
def test_results_are_those_of_the_same_function_up_to_rounding(tmp_path, factor, same):
    with FitFolder(tmp_path / "kept") as folder:
        folder.results(1, EXAMPLE, Found).write(3, EXAMPLE, GIVEN)
        other = folder.results(1, Found(factor * EXAMPLE.values, EXAMPLE.reach), Found)
        found = other.read(3, GIVEN)
        assert (found is not None) == same
        if found is not None:
            np.testing.assert_array_equal(found.values, EXAMPLE.values)
        assert other.read(3, GIVEN[::-1]) is None
        assert other.read(3, GIVEN[:-1]) is None
        assert other.read(3, None) is None
        assert other.read(4, GIVEN) is None
