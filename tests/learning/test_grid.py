"""Cross-validation over a grid."""

import numpy as np
import pytest

from kernelwright import EmbeddingClassifier
from kernelwright.errors import NumericalError
from kernelwright.kernels import Gaussian, Laplace, Linear
from kernelwright.learning import CrossValidation, grid
from kernelwright.objectives import FoldsObjective
from tests import reference as naive
from tests.learning.disc import LABELS, N, X, run


def test_the_grid_takes_its_best_point():
    choice = run(Gaussian(2.0), CrossValidation())
    values = [step.objective for step in choice.history]
    assert len(values) == 7 * 8
    assert choice.value == min(values)
    best = choice.history[int(np.argmin(values))].hyperparameters
    assert choice.ridge == pytest.approx(float(best["ridge"]))
    assert float(choice.kernel.lengthscale.detach()) == pytest.approx(float(best["kernel.lengthscale"]))


def test_the_grid_is_of_powers_around_the_start():
    choice = run(Gaussian(2.0), CrossValidation())
    lengths = sorted({round(float(step.hyperparameters["kernel.lengthscale"]), 9) for step in choice.history})
    ridges = sorted({float(step.hyperparameters["ridge"]) for step in choice.history})
    np.testing.assert_allclose(lengths, [0.25, 0.5, 1, 2, 4, 8, 16])
    np.testing.assert_allclose(ridges, 10.0 ** np.arange(-7, 1))


def test_the_grid_value_is_that_of_five_folds():
    choice = run(Gaussian(2.0), CrossValidation())
    K = naive.gram(naive.gaussian(float(choice.kernel.lengthscale.detach())), X)
    expected = naive.objective(
        "folds",
        K,
        np.eye(2)[LABELS],
        np.ones(N),
        choice.ridge,
        tau=0.0,
        sup=1.0,
        loss="brier",
        epsilon=0.0,
        folds=naive.turns(LABELS, 5),
    )
    assert choice.value == pytest.approx(expected, rel=1e-8)


def test_the_grid_of_a_kernel_without_length_scales_is_of_ridges():
    assert len(run(2.0 * Linear() + 1.0, CrossValidation()).history) == 8


def test_the_grid_keeps_the_ratios_of_length_scales():
    choice = run(Gaussian([1.0, 3.0]) + Laplace(2.0), CrossValidation())
    lengths = choice.kernel.left.lengthscale.detach().numpy()
    assert lengths[1] / lengths[0] == pytest.approx(3.0)
    assert float(choice.kernel.right.lengthscale.detach()) / lengths[0] == pytest.approx(2.0)


@pytest.mark.parametrize("n_folds", [2, 3, N + 7])
def test_the_number_of_folds_can_be_chosen(n_folds):
    choice = run(Gaussian(2.0), CrossValidation(n_folds))
    K = naive.gram(naive.gaussian(float(choice.kernel.lengthscale.detach())), X)
    options = {"tau": 0.0, "sup": 1.0, "loss": "brier", "epsilon": 0.0, "folds": naive.turns(LABELS, min(n_folds, N))}
    expected = naive.objective("folds", K, np.eye(2)[LABELS], np.ones(N), choice.ridge, **options)
    assert choice.value == pytest.approx(expected, rel=1e-8)


def test_of_many_rows_a_sample_makes_the_grid(monkeypatch):
    monkeypatch.setattr(grid, "MANY", 40)
    choice = run(Gaussian(2.0), CrossValidation())
    ridges = [float(step.hyperparameters["ridge"]) * 40 / N for step in choice.history]
    assert min(abs(choice.ridge - ridge) for ridge in ridges) < 1e-12 * choice.ridge


def test_a_grid_without_a_point_that_works_is_an_error(monkeypatch):
    def fail(*_):
        raise NumericalError("no")

    monkeypatch.setattr(FoldsObjective, "__call__", fail)
    with pytest.raises(NumericalError, match="No point of the grid"):
        EmbeddingClassifier(Gaussian(), learn="cross-validation").fit([[0.0], [1.0], [2.0], [3.0]] * 5, [0, 1] * 10)
