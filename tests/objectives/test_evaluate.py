"""Every objective by its name: values against refits and explicit inverses, gradients against finite differences."""

import copy
import math

import numpy as np
import pytest

from kernelwright.kernels import Gaussian, Kernel, Laplace, Linear, Polynomial
from kernelwright.objectives import (
    BrierLoss,
    CalibratedLogLoss,
    ClippedLogLoss,
    FoldsObjective,
    HeldOutObjective,
    LeaveOneOutObjective,
    RademacherObjective,
    objective_named,
    value_and_gradient,
)
from kernelwright.objectives.evaluate import OBJECTIVES
from tests import reference as naive
from tests.cases import Case, settable
from tests.objectives.problem import (
    EPSILON,
    FOLDS,
    LABELS,
    RIDGE,
    TAU,
    WEIGHTS,
    WHOLE,
    N,
    X,
    Y,
    each_loss,
    each_objective,
    kernels,
    settings,
    weightings,
)


def sup_diag(kernel: Kernel) -> float:
    return float(kernel.sup_diag(X).detach())


@each_objective
@each_loss
@weightings
@kernels("gaussian-vector", "laplace", "polynomial", "nested", "tabular")
def test_value_equals_the_naive_one(name, loss, w, case: Case):
    kernel = case.make()
    value, _ = value_and_gradient(
        name, kernel, X, LABELS, ridge=RIDGE, complexity_weight=TAU, loss=loss, epsilon=EPSILON, sample_weight=w
    )
    expected = naive.objective(
        name,
        naive.gram(case.pair, X),
        Y,
        np.ones(N) if w is None else w,
        RIDGE,
        **settings(loss=loss, sup=max(sup_diag(kernel), 0.0)),
    )
    assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out"])
@each_loss
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplace("median", ard=True)], ids=["fixed", "median"])
def test_whole_weights_are_repetitions_in_one_group(name, loss, kernel):
    settings = {"ridge": RIDGE, "complexity_weight": "4e/n", "loss": loss, "epsilon": EPSILON}
    weighted, slopes = value_and_gradient(name, kernel, X, LABELS, sample_weight=WHOLE, **settings)
    copies, groups = (np.repeat(X, WHOLE, 0), np.repeat(LABELS, WHOLE)), np.repeat(np.arange(N), WHOLE)
    repeated, repeated_slopes = value_and_gradient(name, kernel, *copies, groups=groups, **settings)
    assert weighted == pytest.approx(repeated, rel=1e-8)
    for parameter in slopes:
        np.testing.assert_allclose(slopes[parameter], repeated_slopes[parameter], rtol=1e-6, atol=1e-9)


@each_objective
def test_weights_are_relative(name):
    settings = {"ridge": RIDGE, "complexity_weight": "4e/n"}
    first, slopes = value_and_gradient(name, Gaussian(), X, LABELS, sample_weight=WEIGHTS, **settings)
    second, more = value_and_gradient(name, Gaussian(), X, LABELS, sample_weight=7.3 * WEIGHTS, **settings)
    assert first == pytest.approx(second, rel=1e-12)
    np.testing.assert_allclose(slopes["kernel.lengthscale"], more["kernel.lengthscale"], rtol=1e-10)


@each_objective
def test_a_row_of_weight_zero_is_no_row(name):
    w = np.ones(N)
    w[3:5] = 0.0
    kept, folds = w > 0, np.arange(N) % 2
    without, _ = value_and_gradient(name, Gaussian(), X[kept], LABELS[kept], ridge=RIDGE, folds=folds[kept])
    weighted, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=folds, sample_weight=w)
    assert weighted == pytest.approx(without, rel=1e-9)


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out", "empirical-risk"])
def test_the_order_of_the_rows_does_not_matter(name):
    order = np.random.default_rng(1).permutation(N)
    first, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE)
    second, _ = value_and_gradient(name, Gaussian(), X[order], LABELS[order], ridge=RIDGE)
    assert first == pytest.approx(second, rel=1e-10)


def test_labels_may_be_anything_that_sorts():
    words = np.array(["ash", "birch", "cedar"])[LABELS]
    numbers, _ = value_and_gradient("rademacher", Gaussian(), X, LABELS, ridge=RIDGE)
    assert value_and_gradient("rademacher", Gaussian(), X, words, ridge=RIDGE)[0] == numbers


# Defaults and words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "tau"),
    [
        ("4e", 4 * math.e),
        ("4e/n", 4 * math.e / N),
        ("4e/sqrt(n)", 4 * math.e / math.sqrt(N)),
        ("1/n", 1 / N),
        (0.3, 0.3),
    ],
)
def test_words_for_tau(word, tau):
    value, _ = value_and_gradient("rademacher", Gaussian(), X, LABELS, ridge=RIDGE, complexity_weight=word)
    K = naive.gram(naive.gaussian(1.0), X)
    expected = naive.objective("rademacher", K, Y, np.ones(N), RIDGE, **settings(tau=tau, sup=1.0, epsilon=1e-15))
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("name", "tau", "loss"),
    [
        ("rademacher", "4e/n", "log"),
        ("empirical-risk", 0.0, "log"),
        ("held-out", 0.0, "log"),
        ("leave-one-out", 0.0, "brier"),
        ("folds", 0.0, "brier"),
    ],
)
def test_defaults_are_the_documented_ones(name, tau, loss):
    silent, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE)
    spoken, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, complexity_weight=tau, loss=loss)
    assert silent == spoken


def test_an_unknown_objective_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"The 'name' parameter must be one of .*'leave-one-out'.* Got 'loo' instead"):
        value_and_gradient("loo", Gaussian(), X, LABELS, ridge=RIDGE)


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="'loss'"):
        value_and_gradient("rademacher", Gaussian(), X, LABELS, ridge=RIDGE, loss="hinge")


@pytest.mark.parametrize("tau", ["5e", -1.0, math.nan], ids=str)
def test_an_unknown_weight_is_refused(tau):
    with pytest.raises(ValueError, match="'complexity_weight'"):
        value_and_gradient("rademacher", Gaussian(), X, LABELS, ridge=RIDGE, complexity_weight=tau)


@pytest.mark.parametrize("ridge", [0.0, -1.0, math.nan], ids=str)
def test_a_ridge_that_is_not_positive_is_refused(ridge):
    with pytest.raises(ValueError, match="The 'ridge' parameter"):
        value_and_gradient("rademacher", Gaussian(), X, LABELS, ridge=ridge)


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.0], ids=str)
def test_a_clip_that_is_none_is_refused(epsilon):
    with pytest.raises(ValueError, match="'epsilon'"):
        value_and_gradient("leave-one-out", Gaussian(), X, LABELS, ridge=RIDGE, loss="log", epsilon=epsilon)


@pytest.mark.parametrize("bad", [-1.0, math.nan], ids=str)
def test_weights_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match="sample_weight"):
        value_and_gradient("rademacher", Gaussian(), X, LABELS, ridge=RIDGE, sample_weight=[bad] + [1.0] * (N - 1))


def test_weights_of_a_wrong_length_are_refused():
    with pytest.raises(ValueError, match="sample_weight"):
        value_and_gradient("rademacher", Gaussian(), X, LABELS, ridge=RIDGE, sample_weight=np.ones(N - 1))


def test_labels_of_a_wrong_length_are_refused():
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples|rows"):
        value_and_gradient("rademacher", Gaussian(), X, LABELS[:-1], ridge=RIDGE)


def test_the_given_kernel_is_not_changed():
    kernel = Gaussian("median", ard=True)
    before = repr(kernel)
    value_and_gradient("rademacher", kernel, X, LABELS, ridge=RIDGE)
    assert repr(kernel) == before


@pytest.mark.parametrize("word", OBJECTIVES)
def test_a_word_is_the_object_with_its_own_defaults(word):
    assert objective_named(word) == OBJECTIVES[word]()


def test_settings_of_a_word_are_those_of_the_object():
    how = {"complexity_weight": 0.3, "shrinkage": 2.0, "precision": "single"}
    assert objective_named("rademacher", epsilon=0.1, **how) == RademacherObjective(
        0.3, ClippedLogLoss(0.1), 2.0, "single"
    )
    assert objective_named("leave-one-out", **how) == LeaveOneOutObjective(0.3, BrierLoss(), 2.0, "single")
    assert objective_named("folds", folds=7, loss="calibrated") == FoldsObjective(loss=CalibratedLogLoss(), folds=7)
    assert objective_named("held-out", folds=(0, 1, 0)) == HeldOutObjective(folds=(0, 1, 0))
    with pytest.raises(ValueError, match="loo"):
        objective_named("loo")


# Gradients in plain parameters: finite differences -----------------------------------------------------------


def finite_differences(name: str, kernel: Kernel, plain_name: str, step: float = 1e-5, **how) -> np.ndarray:
    """Compute central differences of the public function; mixture weights move along their simplex."""

    def value(shift: np.ndarray) -> float:
        moved = copy.deepcopy(kernel)
        ridge = how["ridge"]
        if plain_name == "ridge":
            ridge = ridge + float(shift)
        else:
            owner, leaf = settable(moved, plain_name.removeprefix("kernel."))
            setattr(owner, leaf, getattr(owner, leaf).detach().numpy() + shift)
        return value_and_gradient(name, moved, X, LABELS, **how | {"ridge": ridge})[0]

    if plain_name == "ridge":
        return np.array((value(np.array(1e-7)) - value(np.array(-1e-7))) / 2e-7)
    owner, leaf = settable(kernel, plain_name.removeprefix("kernel."))
    start = getattr(owner, leaf).detach().numpy()
    slopes = []
    for place in np.ndindex(*start.shape):
        direction = np.zeros_like(start)
        direction[place] = step
        if leaf == "weights":
            direction[0] -= step
        slopes.append((value(direction) - value(-direction)) / (2 * step))
    return np.array(slopes).reshape(start.shape)


@each_objective
@each_loss
@weightings
@kernels(
    "gaussian", "matern-2.5-vector", "rational-quadratic", "polynomial", "nested", "convex-sum-of-nested", "tabular"
)
def test_plain_gradient_equals_finite_differences(name, loss, w, case: Case):
    how = {"ridge": RIDGE, "complexity_weight": TAU, "loss": loss, "epsilon": EPSILON, "sample_weight": w}
    kernel = case.make()
    _, gradient = value_and_gradient(name, kernel, X, LABELS, **how)
    assert "ridge" in gradient
    assert len(gradient) == 1 + len(list(kernel.parameters()))
    scale = max(float(np.abs(g).max()) for g in gradient.values())
    for plain_name, found in gradient.items():
        expected = finite_differences(name, kernel, plain_name, **how)
        if plain_name.endswith("weights"):
            found = found - found[0]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * scale, err_msg=plain_name)


@each_objective
@weightings
@pytest.mark.parametrize("kernel", [Gaussian([0.7, 1.3, 0.9, 2.0]), Laplace(1.7)], ids=["gaussian", "laplace"])
def test_gradient_of_the_calibrated_loss_equals_finite_differences(name, w, kernel):
    """The fitted numbers of the map move with the outputs: only at their optimum may the gradient ignore that."""

    def value(lengthscale, ridge):
        moved = type(kernel)(lengthscale)
        how = {"ridge": ridge, "loss": "calibrated", "complexity_weight": TAU, "sample_weight": w, "folds": FOLDS}
        return value_and_gradient(name, moved, X, LABELS, **how)

    lengths = np.atleast_1d(kernel.lengthscale.detach().numpy())
    _, gradient = value(lengths if len(lengths) > 1 else lengths[0], RIDGE)
    for d in range(len(lengths)):
        step = 1e-4 * (np.arange(len(lengths)) == d)
        up, down = (value(v if len(v) > 1 else v[0], RIDGE)[0] for v in (lengths + step, lengths - step))
        slope = np.atleast_1d(gradient["kernel.lengthscale"])[d]
        assert slope == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-6)
    up, down = (value(lengths if len(lengths) > 1 else lengths[0], RIDGE * f)[0] for f in (1.001, 0.999))
    assert gradient["ridge"] == pytest.approx((up - down) / (0.002 * RIDGE), rel=1e-4, abs=1e-6)


# Laws --------------------------------------------------------------------------------------------------------


@each_objective
@each_loss
@pytest.mark.parametrize("c", [0.01, 7.0])
def test_a_factor_on_kernel_and_ridge_changes_nothing(name, loss, c):
    """K -> cK and ridge -> c ridge: V -> V/c, outputs stay, sup k and tr(V'KV) change by c and 1/c."""
    how = {"complexity_weight": TAU, "loss": loss, "epsilon": EPSILON}
    value, gradient = value_and_gradient(name, 2.0 * Gaussian(1.5), X, LABELS, ridge=RIDGE, **how)
    scaled, scaled_gradient = value_and_gradient(name, (2.0 * c) * Gaussian(1.5), X, LABELS, ridge=c * RIDGE, **how)
    assert scaled == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(
        scaled_gradient["kernel.kernel.lengthscale"], gradient["kernel.kernel.lengthscale"], rtol=1e-7
    )


@each_objective
@each_loss
def test_the_gradient_along_that_direction_is_zero(name, loss):
    _, gradient = value_and_gradient(
        name, 2.0 * Gaussian(1.5), X, LABELS, ridge=RIDGE, complexity_weight=TAU, loss=loss, epsilon=EPSILON
    )
    along = 2.0 * gradient["kernel.factor"] + RIDGE * gradient["ridge"]
    assert float(along) == pytest.approx(0.0, abs=1e-10)


@each_objective
def test_outputs_beyond_the_clip_have_finite_values_and_no_slope(name):
    labels = np.arange(N) % 2
    far = np.where(labels, 50.0, -50.0)[:, None] * np.ones((1, 2))  # two points, each of one class
    value, gradient = value_and_gradient(name, Gaussian(), far, labels, ridge=1e-6, complexity_weight=0.0)
    assert math.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradient.values())


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(offset=1.0)], ids=str)
@each_objective
def test_points_at_the_origin_have_finite_values(name, kernel):
    value, gradient = value_and_gradient(
        name, kernel, np.zeros((6, 2)), np.arange(6) % 2, ridge=0.1, complexity_weight=0.1
    )
    assert math.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradient.values())
