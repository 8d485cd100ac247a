"""Every objective: values against refits and explicit inverses, gradients against finite differences and autograd."""

import copy
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.errors import PrecisionWarning
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian, Kernel, Laplace, Linear, Polynomial, Tabular
from kernelwright.numerics import distances
from kernelwright.numerics.linalg import Factor, Workspace
from kernelwright.objectives import Hyperparameters, Objective, value_and_gradient
from kernelwright.objectives.objective import NAMES
from tests import reference as naive
from tests.cases import N_FEATURES, Case, by_id, settable

N, M = 14, 3
RNG = np.random.default_rng(7)
LABELS = RNG.permutation(np.arange(N) % M)
X = RNG.normal(size=(N, N_FEATURES)) + 0.8 * np.eye(M, N_FEATURES)[LABELS]
Y = np.eye(M)[LABELS]
WHOLE = RNG.integers(1, 4, N)
WEIGHTS = RNG.uniform(0.3, 2.5, N)  # some below one: such a row is left out whole
RIDGE, TAU, EPSILON = 0.05, 0.07, 0.02
FOLDS = naive.turns(LABELS, 2)

each_objective = pytest.mark.parametrize("name", NAMES)
each_loss = pytest.mark.parametrize("loss", ["log", "brier"])
weightings = pytest.mark.parametrize("w", [None, WEIGHTS], ids=["unweighted", "weighted"])


def kernels(*ids: str):
    return pytest.mark.parametrize("case", by_id(*ids), ids=lambda case: case.id)


def settings(**changes):
    return {"tau": TAU, "loss": "log", "epsilon": EPSILON, "folds": FOLDS} | changes


def sup_diag(kernel: Kernel) -> float:
    return float(kernel.sup_diag(X).detach())


# Values ------------------------------------------------------------------------------------------------------


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


@each_objective
@each_loss
def test_value_with_a_prior_equals_the_naive_one(name, loss):
    prior, kernel = np.array([0.5, 0.3, 0.2]), Gaussian(1.5)
    data = TrainingSet.of(
        torch.from_numpy(X), one_hot(LABELS, M), weights=torch.from_numpy(WEIGHTS), prior=torch.from_numpy(prior)
    )
    how = Objective(name, complexity_weight=TAU, loss=loss, epsilon=EPSILON)
    found = how(Hyperparameters(kernel, RIDGE), data)
    K = naive.gram(naive.gaussian(1.5), X)
    expected = naive.objective(name, K, Y, WEIGHTS, RIDGE, **settings(loss=loss, sup=1.0, prior=prior))
    assert found.value == pytest.approx(expected, rel=1e-9)


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


GROUPS = np.array([0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6])


@each_loss
@weightings
def test_groups_are_left_out_as_a_whole(loss, w):
    settings = {"ridge": RIDGE, "complexity_weight": TAU, "loss": loss, "epsilon": EPSILON}
    value, _ = value_and_gradient("leave-one-out", Gaussian(1.5), X, LABELS, sample_weight=w, groups=GROUPS, **settings)
    K, weights = naive.gram(naive.gaussian(1.5), X), np.ones(N) if w is None else w
    options = {"tau": TAU, "loss": loss, "epsilon": EPSILON, "folds": FOLDS, "sup": 1.0, "groups": GROUPS}
    assert value == pytest.approx(naive.objective("leave-one-out", K, Y, weights, RIDGE, **options), rel=1e-9)


@pytest.mark.parametrize("name", ["folds", "held-out"])
def test_no_group_is_cut_by_a_fold(name):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M), groups=torch.from_numpy(GROUPS))
    folds = data.folds(2)
    assert all(len(set(folds[g == GROUPS])) == 1 for g in set(GROUPS))
    by_number, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=2, groups=GROUPS)
    weights = np.full(N, 1.0)
    by_folds, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=folds, sample_weight=weights)
    assert by_number == pytest.approx(by_folds, rel=1e-12)


@pytest.mark.parametrize("n_copies", [2, 3])
def test_merged_rows_may_fall_into_different_folds(n_copies):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M), counts=torch.full((N,), float(n_copies)).double())
    merged = replace(data, weights=n_copies * data.weights)
    apart = data.subset(torch.arange(N).repeat_interleave(n_copies))
    apart = replace(apart, counts=None)
    how = Objective("folds", loss="brier", folds=3)
    values = [how(Hyperparameters(Gaussian(1.5), RIDGE), rows).value for rows in (merged, apart)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


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


@pytest.mark.parametrize("name", ["held-out", "folds"])
def test_folds_may_be_a_number_or_a_number_for_each_row(name):
    counted, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=3)
    given, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=naive.turns(LABELS, 3))
    assert counted == pytest.approx(given, rel=1e-12)


def test_one_fold_for_each_row_is_leave_one_out():
    by_folds, _ = value_and_gradient("folds", Gaussian(), X, LABELS, ridge=RIDGE, folds=np.arange(N))
    closed_form, _ = value_and_gradient("leave-one-out", Gaussian(), X, LABELS, ridge=RIDGE)
    assert by_folds == pytest.approx(closed_form, rel=1e-9)


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


def test_empirical_risk_ignores_the_complexity():
    with_weight, _ = value_and_gradient("empirical-risk", Gaussian(), X, LABELS, ridge=RIDGE, complexity_weight=5.0)
    assert with_weight == value_and_gradient("empirical-risk", Gaussian(), X, LABELS, ridge=RIDGE)[0]


def test_an_unknown_objective_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"The 'name' parameter must be one of .*'leave-one-out'.* Got 'loo' instead"):
        value_and_gradient("loo", Gaussian(), X, LABELS, ridge=RIDGE)


def test_an_unknown_objective_is_refused_by_the_class_too():
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M))
    with pytest.raises(ValueError, match="loo"):
        Objective("loo")(Hyperparameters(Gaussian(), RIDGE), data)


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


@pytest.mark.parametrize("name", ["held-out", "folds"])
@pytest.mark.parametrize(
    "folds", [1, np.zeros(N, dtype=int), np.arange(N - 1) % 2], ids=["one", "all-in-one", "too-few-rows"]
)
def test_folds_that_leave_nothing_to_train_or_test_are_refused(name, folds):
    with pytest.raises(ValueError, match="'folds'"):
        value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=folds)


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


# Gradients in plain parameters: finite differences -----------------------------------------------------------


def finite_differences(name: str, kernel: Kernel, plain_name: str, step: float = 1e-5, **how) -> np.ndarray:
    """Central differences of the public function; a mixture moves along its simplex."""

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


# Gradients in raw parameters: autograd through the factorisation ---------------------------------------------


def autograd(
    name: str, hyper: Hyperparameters, data: TrainingSet, how: Objective
) -> tuple[float, dict[str, torch.Tensor]]:
    ridge = hyper.ridge
    value = naive.torch_objective(
        name,
        hyper.kernel.forward(data.points),
        data.targets,
        data.weights,
        ridge,
        sup=hyper.kernel.sup_diag(data.points),
        prior=data.prior,
        **settings(loss=how.loss, tau=how.complexity_weight),
    )
    away = (torch.log(ridge * data.total_weight) - math.log(5.0)) / 2.0  # the absolute ridge is drawn to 5
    value = value + how.shrinkage / data.total_weight * (hyper.kernel.penalty() + torch.log(1 + 0.5 * away**2))
    raw = dict(hyper.named_parameters())
    grads = torch.autograd.grad(value, list(raw.values()), allow_unused=True)
    return float(value.detach()), {
        key: torch.zeros_like(p) if g is None else g for (key, p), g in zip(raw.items(), grads, strict=True)
    }


def assert_gradients_close(
    found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], tol: float = 1e-9
) -> None:
    assert found.keys() == expected.keys()
    scale = max(float(g.abs().max()) for g in expected.values())
    for key, gradient in expected.items():
        assert found[key].shape == gradient.shape, key
        torch.testing.assert_close(
            found[key], gradient, rtol=tol, atol=tol * scale, msg=lambda m, key=key: f"{key}: {m}"
        )


@each_objective
@each_loss
@weightings
@kernels(
    "gaussian-vector",
    "laplace-vector",
    "matern-0.5",
    "rational-quadratic-vector",
    "linear",
    "polynomial",
    "cosine",
    "unbounded-sum",
    "convex-sum",
    "nested",
    "nested-scalars",
    "tabular",
    "tabular-one-scale",
    "tabular-nested",
)
def test_gradient_equals_autograd_through_a_cholesky_factor(name, loss, w, case: Case):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M), weights=None if w is None else torch.from_numpy(w))
    hyper = Hyperparameters(case.make(), RIDGE)
    how = Objective(name, complexity_weight=TAU, loss=loss, epsilon=EPSILON)
    found = how(hyper, data)
    value, expected = autograd(name, hyper, data, how)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert_gradients_close(found.gradients, expected)


@each_objective
@each_loss
@kernels("gaussian-vector", "tabular", "nested")
def test_gradient_with_prior_and_shrinkage_equals_autograd(name, loss, case: Case):
    data = TrainingSet.of(
        torch.from_numpy(X),
        one_hot(LABELS, M),
        weights=torch.from_numpy(WEIGHTS),
        prior=torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64),
    )
    hyper = Hyperparameters(case.make(), RIDGE)
    how = Objective(name, complexity_weight=TAU, loss=loss, epsilon=EPSILON, shrinkage=0.8)
    found = how(hyper, data)
    value, expected = autograd(name, hyper, data, how)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert_gradients_close(found.gradients, expected)


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


@each_objective
def test_gradient_is_the_same_through_the_compiled_loops(name, monkeypatch):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M))
    hyper = Hyperparameters(Tabular([0.7, 1.3]), RIDGE)
    how = Objective(name, complexity_weight=TAU, loss="brier")
    results = []
    for compiled_from in (0, 10**12):
        monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
        results.append(how(hyper, data).gradients)
    assert_gradients_close(*results, tol=1e-10)


@each_objective
def test_a_frozen_parameter_has_no_gradient_and_changes_no_other(name):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M))
    how = Objective(name, complexity_weight=TAU, loss="brier")
    free, frozen = (Hyperparameters(2.0 * Gaussian(1.5) + Laplace(2.0), RIDGE) for _ in range(2))
    frozen.kernel.left.kernel.log_lengthscale.requires_grad_(False)
    expected = how(free, data).gradients
    expected.pop("kernel.left.kernel.log_lengthscale")
    assert_gradients_close(how(frozen, data).gradients, expected, tol=1e-12)


def test_parts_of_an_evaluation_add_up():
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M))
    kernel = Gaussian([0.5, 1.0, 2.0, 4.0])
    found = Objective("rademacher", complexity_weight=TAU, shrinkage=1.0)(Hyperparameters(kernel, RIDGE), data)
    caution = math.log(1 + 0.5 * (math.log(RIDGE * N / 5.0) / 2.0) ** 2)
    penalty = (float(kernel.penalty().detach()) + caution) / N
    assert found.value == pytest.approx(found.loss + TAU * found.complexity + penalty, rel=1e-12)
    K = naive.gram(naive.gaussian([0.5, 1.0, 2.0, 4.0]), X)
    assert found.complexity == pytest.approx(
        math.sqrt(naive.squared_norm(K, Y, naive.noise(np.ones(N), RIDGE))), rel=1e-9
    )


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


@pytest.mark.parametrize("name", ["rademacher", "empirical-risk"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5, ard=True), Laplace(3.0), Gaussian(1.0) + Laplace(2.0)])
def test_a_factor_in_single_precision_gives_the_numbers_of_double(name, kernel):
    rng = np.random.default_rng(0)
    data = TrainingSet.of(torch.from_numpy(rng.normal(size=(60, 3))), one_hot(np.arange(60) % 3, 3))
    kernel.prepare_(data.points)
    hyper = Hyperparameters(kernel, 0.01)
    for workspace in (None, Workspace()):
        double, single = (
            Objective(name, complexity_weight=0.1, precision=precision)(hyper, data, workspace)
            for precision in ("double", "single")
        )
        assert single.value == pytest.approx(double.value, rel=1e-10)
        for parameter, gradient in double.gradients.items():
            np.testing.assert_allclose(single.gradients[parameter], gradient, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", ["brier", "calibrated"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5, ard=True), Laplace(3.0)])
def test_leave_one_out_in_single_precision_is_close_to_double(kernel, loss):
    rng = np.random.default_rng(0)
    data = TrainingSet.of(torch.from_numpy(rng.normal(size=(60, 3))), one_hot(np.arange(60) % 3, 3))
    kernel.prepare_(data.points)
    hyper = Hyperparameters(kernel, 0.01)
    double, single = (
        Objective("leave-one-out", complexity_weight=0.1, loss=loss, precision=precision)(hyper, data)
        for precision in ("double", "single")
    )
    assert single.value != double.value
    assert single.value == pytest.approx(double.value, rel=1e-6)
    for parameter, gradient in double.gradients.items():
        np.testing.assert_allclose(single.gradients[parameter], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out"])
def test_what_single_precision_cannot_do_is_done_in_double_and_said(name):
    X = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    data = TrainingSet.of(X, one_hot(np.arange(50) % 2, 2))
    hyper = Hyperparameters(Gaussian(2.0), 1e-9)
    double = Objective(name, complexity_weight=0.1)(hyper, data)
    with pytest.warns(PrecisionWarning, match="Learning goes on in double precision"):
        single = Objective(name, complexity_weight=0.1, precision="single")(hyper, data)
    assert single.value == double.value
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asked for it, so nothing is said
        assert Objective(name, complexity_weight=0.1, precision="auto")(hyper, data).value == double.value


def test_an_inverse_in_single_precision_that_is_wrong_is_refused(monkeypatch):
    data = TrainingSet.of(torch.linspace(0, 1, 20, dtype=torch.float64)[:, None], one_hot(np.arange(20) % 2, 2))
    right = Factor.into_inverse_
    monkeypatch.setattr(
        Factor, "into_inverse_", lambda self: right(self) * (1.0005 if self.lower.itemsize == 4 else 1.0)
    )
    objective = Objective("leave-one-out", precision="single")
    with pytest.warns(PrecisionWarning, match=r"entries that are wrong by 5e-04.*in double precision"):
        objective(Hyperparameters(Gaussian(), 0.1), data)


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out", "folds"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5, ard=True), Laplace(3.0), Gaussian(1.0) + Laplace(2.0)])
def test_a_workspace_changes_nothing_but_where_numbers_lie(name, kernel):
    rng, workspace = np.random.default_rng(1), Workspace()
    for n in (40, 40, 25):  # other numbers in the same memory, then another size
        data = TrainingSet.of(torch.from_numpy(rng.normal(size=(n, 3))), one_hot(np.arange(n) % 3, 3))
        kernel.prepare_(data.points)
        hyper, objective = Hyperparameters(kernel, 0.01), Objective(name, complexity_weight=0.1)
        plain, reused = objective(hyper, data), objective(hyper, data, workspace)
        assert reused.value == pytest.approx(plain.value, rel=1e-12)
        for parameter, gradient in plain.gradients.items():
            np.testing.assert_allclose(reused.gradients[parameter], gradient, rtol=1e-9, atol=1e-12)
