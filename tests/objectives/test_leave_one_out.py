"""Leave-one-out objectives: each row, or group, is predicted from all others."""

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.errors import PrecisionWarning
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.numerics.linalg import Factor
from kernelwright.objectives import Hyperparameters, LeaveOneOutObjective, objective_named, value_and_gradient
from kernelwright.objectives.losses import BRIER
from kernelwright.objectives.terms import Setting
from tests import reference as naive
from tests.objectives.problem import (
    EPSILON,
    FOLDS,
    GROUPS,
    LABELS,
    RIDGE,
    TAU,
    WEIGHTS,
    N,
    X,
    Y,
    each_loss,
    rows,
    weightings,
)


@each_loss
@weightings
def test_groups_are_left_out_as_a_whole(loss, w):
    settings = {"ridge": RIDGE, "complexity_weight": TAU, "loss": loss, "epsilon": EPSILON}
    value, _ = value_and_gradient("leave-one-out", Gaussian(1.5), X, LABELS, sample_weight=w, groups=GROUPS, **settings)
    K, weights = naive.gram(naive.gaussian(1.5), X), np.ones(N) if w is None else w
    options = {"tau": TAU, "loss": loss, "epsilon": EPSILON, "folds": FOLDS, "sup": 1.0, "groups": GROUPS}
    assert value == pytest.approx(naive.objective("leave-one-out", K, Y, weights, RIDGE, **options), rel=1e-9)


@pytest.mark.parametrize("loss", ["brier", "calibrated"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5, ard=True), Laplace(3.0)])
def test_leave_one_out_in_single_precision_is_close_to_double(kernel, loss):
    rng = np.random.default_rng(0)
    data = TrainingSet.of(torch.from_numpy(rng.normal(size=(60, 3))), one_hot(np.arange(60) % 3, 3))
    kernel.prepare_(data.points)
    hyper = Hyperparameters(kernel, 0.01)
    double, single = (
        objective_named("leave-one-out", complexity_weight=0.1, loss=loss, precision=precision)(hyper, data)
        for precision in ("double", "single")
    )
    assert single.value != double.value
    assert single.value == pytest.approx(double.value, rel=1e-6)
    for parameter, gradient in double.gradients.items():
        np.testing.assert_allclose(single.gradients[parameter], gradient, rtol=1e-4, atol=1e-5)


def test_an_inverse_in_single_precision_that_is_wrong_is_refused(monkeypatch):
    data = TrainingSet.of(torch.linspace(0, 1, 20, dtype=torch.float64)[:, None], one_hot(np.arange(20) % 2, 2))
    right = Factor.into_inverse_
    monkeypatch.setattr(
        Factor, "into_inverse_", lambda self: right(self) * (1.0005 if self.lower.itemsize == 4 else 1.0)
    )
    objective = objective_named("leave-one-out", precision="single")
    with pytest.warns(PrecisionWarning, match=r"entries that are wrong by 5e-04.*in double precision"):
        objective(Hyperparameters(Gaussian(), 0.1), data)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_the_kernel_matrix_is_left_as_it_was(groups):
    K = torch.from_numpy(naive.gram(naive.gaussian(1.5), X))
    before = K.clone()
    LeaveOneOutObjective().dual(K, rows(weights=WEIGHTS, groups=groups), Setting(RIDGE, TAU, 1.0, BRIER))
    assert torch.equal(K, before)


@pytest.mark.parametrize("w", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_of_merged_rows_one_is_left_out(w):
    """Point 2 stands for three equal rows: two of them stay when one is scored."""
    w = np.ones(N) if w is None else w
    times = np.ones(N, dtype=int)
    times[2] = 3
    apart = np.repeat(np.arange(N), times)
    K = naive.gram(naive.gaussian(1.5), X)
    each = (w / times)[apart]
    F = naive.leave_one_out(K[np.ix_(apart, apart)], Y[apart], each, RIDGE)
    merged = rows(weights=w, counts=times.astype(float))
    terms = LeaveOneOutObjective().dual(torch.from_numpy(K), merged, Setting(RIDGE, 0.0, 1.0, BRIER))
    assert terms.loss == pytest.approx(naive.brier(F, Y[apart], each), rel=1e-9)
