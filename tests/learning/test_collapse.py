"""A warning is given if learning has collapsed to the class frequencies."""

import math
import warnings

import pytest

from kernelwright.embedding import embed
from kernelwright.errors import CollapseWarning
from kernelwright.kernels import Gaussian
from kernelwright.learning import LBFGS, METHODS
from kernelwright.learning.collapse import warn_of_collapse
from tests.learning.disc import N, data, run

BY_GRADIENT = ["rademacher", "held-out", "leave-one-out", "folds", "empirical-risk"]


@pytest.mark.parametrize("learn", ["rademacher", "held-out"])
def test_a_weight_of_4e_collapses_with_a_warning(learn):
    with pytest.warns(CollapseWarning, match=r"collapsed to the overall frequencies.*tau = 10\.9"):
        choice = run(Gaussian("median"), METHODS[learn](complexity_weight="4e"))
    rows = data()
    outputs = embed(choice.kernel(rows.points).detach(), rows, choice.ridge).fitted
    assert float(outputs.std(0).max()) < 0.02
    assert choice.history[-1].complexity == pytest.approx(1 / (4 * math.e), rel=0.2)  # r = 1 / tau


@pytest.mark.parametrize("learn", BY_GRADIENT)
def test_default_weights_do_not_collapse(learn):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", CollapseWarning)
        choice = run(Gaussian("median"), METHODS[learn](optimizer=LBFGS(30)))
    outputs = embed(choice.kernel(data().points).detach(), data(), choice.ridge).fitted
    assert float(outputs.std(0).max()) > 0.1


@pytest.mark.parametrize(("ridge", "tau", "said"), [(1e4, 1.0, True), (1e4, 0.0, False), (1e-3, 0.01, False)])
def test_only_a_constant_that_the_weight_asked_for_is_a_collapse(ridge, tau, said):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_collapse(Gaussian(), data(), ridge, tau)
    assert len(caught) == said
    if said:
        assert f"('4e/n' is {4 * math.e / N:.3g} here), or learn='auto'" in str(caught[0].message)
