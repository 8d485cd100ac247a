"""Every way to choose hyperparameters runs, improves on its start, and warns where it should."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet, embed
from kernelwright.embedding.training_set import smoothed_prior
from kernelwright.errors import CollapseWarning
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import Gaussian, Kernel, Laplace, Linear, Tabular
from kernelwright.learning.recipes import Choice, Settings, choose
from kernelwright.objectives import Hyperparameters, Objective
from tests import reference as naive

N = 60
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
LABELS = (np.hypot(*X.T) + 0.1 * RNG.normal(size=N) > 1.1).astype(int)  # a disc and what is around it
BY_GRADIENT = ["rademacher", "held-out", "leave-one-out", "empirical-risk"]
LOSS = {"leave-one-out": "brier"}
TAU = {"rademacher": "4e/n", "held-out": "1/n", "leave-one-out": "1/n", "empirical-risk": 0.0}


def data(points: np.ndarray = X, labels: np.ndarray = LABELS, **how) -> TrainingSet:
    return TrainingSet.of(torch.from_numpy(points), one_hot(labels, 2), **how)


def run(kernel: Kernel, rows: TrainingSet | None = None, seed: int = 0, **settings) -> Choice:
    return choose(copy.deepcopy(kernel), rows or data(), Settings(**settings), torch.Generator().manual_seed(seed))


def accuracy(choice: Choice, rows: TrainingSet) -> float:
    outputs = embed(choice.kernel(rows.points).detach(), rows, choice.ridge).leave_one_out()
    return float((outputs.argmax(1) == rows.strata).double().mean())


# Without learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "ridge"), [("auto", 0.01), (0.3, 0.3)])
def test_nothing_is_learned_where_nothing_is_asked(given, ridge):
    choice = run(Gaussian(1.7), learn=None, ridge=given)
    assert repr(choice.kernel) == repr(Gaussian(1.7))
    assert choice.ridge == ridge
    assert math.isnan(choice.value)
    assert choice.history == []


@pytest.mark.parametrize(("kernel", "order"), [(Gaussian(9.0), 2), (Laplace(9.0), 1)], ids=["gaussian", "laplace"])
def test_the_median_heuristic(kernel, order):
    choice = run(kernel, learn="median", ridge=0.2)
    assert float(choice.kernel.lengthscale.detach()) == pytest.approx(naive.lower_median_of_distances(X, order))
    assert choice.ridge == 0.2


def test_the_median_heuristic_counts_weights():
    whole = np.random.default_rng(0).integers(1, 4, N)
    choice = run(Gaussian(), data(weights=torch.from_numpy(whole.astype(float))), learn="median")
    expected = naive.lower_median_of_distances(np.repeat(X, whole, axis=0), 2)
    assert float(choice.kernel.lengthscale.detach()) == pytest.approx(expected)


# By gradient -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn", BY_GRADIENT)
@pytest.mark.parametrize("optimizer", ["auto", "adam"])
def test_gradients_improve_on_the_start(learn, optimizer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the training loss alone asks for a ridge of almost nothing
        choice = run(Gaussian(3.0), learn=learn, optimizer=optimizer, max_iter=30)
    objective = Objective(learn, complexity_weight=TAU[learn], loss=LOSS.get(learn, "log"))
    before = objective(Hyperparameters(Gaussian(3.0), 0.01), data()).value
    after = objective(Hyperparameters(choice.kernel, choice.ridge), data()).value
    assert after < before - 1e-3
    assert choice.value == pytest.approx(after, rel=1e-9)
    assert len(choice.history) > 1


def test_learning_by_gradient_starts_from_the_given_ridge():
    choice = run(Gaussian(3.0), learn="leave-one-out", ridge=0.3, max_iter=2)
    assert float(choice.history[0].hyperparameters["ridge"]) == pytest.approx(0.3)


def test_a_given_complexity_weight_is_used():
    choice = run(Gaussian(3.0), learn="rademacher", complexity_weight=0.01, max_iter=10)
    objective = Objective("rademacher", complexity_weight=0.01)
    assert choice.value == pytest.approx(objective(Hyperparameters(choice.kernel, choice.ridge), data()).value)


def test_ard_length_scales_are_learned_one_by_one():
    noise = np.random.default_rng(5).normal(size=(N, 1))
    rows = data(np.hstack([X, noise]))
    choice = run(Gaussian("median", ard=True), rows, learn="leave-one-out")
    lengths = choice.kernel.lengthscale.detach().numpy()
    assert lengths[2] > 1.5 * lengths[:2].max()  # the third column says nothing


@pytest.mark.parametrize("learn", ["rademacher", "leave-one-out"])
def test_batches_are_taken_and_repeatable(learn):
    first, second, third = (
        run(Gaussian(3.0), seed=seed, learn=learn, batch_size=15, max_iter=10) for seed in (0, 0, 1)
    )
    assert len(first.history) == 10
    assert first.ridge == second.ridge
    assert first.ridge != third.ridge


def test_lbfgs_with_batches_is_refused():
    with pytest.raises(ValueError, match=r"optimizer='lbfgs' .* cannot take batch_size; use optimizer='adam'"):
        run(Gaussian(), learn="rademacher", optimizer="lbfgs", batch_size=10)


def test_an_unknown_way_to_learn_is_refused():
    with pytest.raises((ValueError, KeyError), match="luck"):
        run(Gaussian(), learn="luck")


# Collapse ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn", ["rademacher", "held-out"])
def test_a_weight_of_4e_collapses_with_a_warning(learn):
    with pytest.warns(CollapseWarning, match=r"collapsed to the class frequencies.*tau = 10\.9"):
        choice = run(Gaussian("median"), learn=learn, complexity_weight="4e")
    rows = data()
    outputs = embed(choice.kernel(rows.points).detach(), rows, choice.ridge).fitted
    assert float(outputs.std(0).max()) < 0.02
    assert choice.history[-1].complexity == pytest.approx(1 / (4 * math.e), rel=0.2)  # r = 1 / tau


@pytest.mark.parametrize("learn", BY_GRADIENT)
def test_default_weights_do_not_collapse(learn):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", CollapseWarning)
        choice = run(Gaussian("median"), learn=learn, max_iter=30)
    outputs = embed(choice.kernel(data().points).detach(), data(), choice.ridge).fitted
    assert float(outputs.std(0).max()) > 0.1


# By a grid ---------------------------------------------------------------------------------------------------


def test_the_grid_takes_its_best_point():
    choice = run(Gaussian(2.0), learn="cross-validation")
    values = [step.objective for step in choice.history]
    assert len(values) == 7 * 8
    assert choice.value == min(values)
    best = choice.history[int(np.argmin(values))].hyperparameters
    assert choice.ridge == pytest.approx(float(best["ridge"]))
    assert float(choice.kernel.lengthscale.detach()) == pytest.approx(float(best["kernel.lengthscale"]))


def test_the_grid_is_of_powers_around_the_start():
    choice = run(Gaussian(2.0), learn="cross-validation")
    lengths = sorted({round(float(step.hyperparameters["kernel.lengthscale"]), 9) for step in choice.history})
    ridges = sorted({float(step.hyperparameters["ridge"]) for step in choice.history})
    np.testing.assert_allclose(lengths, [0.25, 0.5, 1, 2, 4, 8, 16])
    np.testing.assert_allclose(ridges, 10.0 ** np.arange(-7, 1))


def test_the_grid_value_is_that_of_five_folds():
    choice = run(Gaussian(2.0), learn="cross-validation")
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
    assert len(run(2.0 * Linear() + 1.0, learn="cross-validation").history) == 8


def test_the_grid_keeps_the_ratios_of_length_scales():
    choice = run(Gaussian([1.0, 3.0]) + Laplace(2.0), learn="cross-validation")
    lengths = choice.kernel.left.lengthscale.detach().numpy()
    assert lengths[1] / lengths[0] == pytest.approx(3.0)
    assert float(choice.kernel.right.lengthscale.detach()) / lengths[0] == pytest.approx(2.0)


# The library's own recipe ------------------------------------------------------------------------------------


def test_auto_improves_on_its_start():
    choice = run(Gaussian(5.0, ard=True), learn="auto")
    objective = Objective("leave-one-out", complexity_weight="1/n", loss="calibrated", shrinkage=1.0)
    before = objective(Hyperparameters(Gaussian([5.0, 5.0]), 0.1 / N), data()).value
    after = objective(Hyperparameters(choice.kernel, choice.ridge), data()).value
    assert after < before - 1e-2
    assert choice.value == pytest.approx(after, rel=1e-9)


def test_auto_learns_the_default_kernel_of_a_table():
    views = TableViews().fit_transform(X)
    targets = one_hot(LABELS, 2)
    rows = data(views, prior=smoothed_prior(targets, torch.ones(N, dtype=torch.float64)))
    choice = run(Tabular(), rows, learn="auto")
    assert choice.kernel.lengthscale.shape == (2,)
    assert accuracy(choice, rows) > 0.85


def test_auto_may_return_the_mean_of_its_two_stages():
    rows = data(TableViews().fit_transform(X))
    single, mean = (run(Tabular(), rows, learn="auto", average=average) for average in (False, True))
    equal, free = mean.kernel.kernels
    np.testing.assert_allclose(mean.kernel.weights.detach(), 0.5)
    assert len(set(equal.lengthscale.detach().tolist())) == 1
    assert repr(free) == repr(single.kernel)
    ridges = [float(step.hyperparameters["ridge"]) for step in mean.history if step.stage == mean.history[-1].stage]
    assert min(ridges) <= mean.ridge <= max(ridges) * 1.5


def test_targets_that_are_no_classes_are_learned_by_the_brier_loss_alone():
    choice = run(Gaussian(5.0, ard=True), learn="auto", loss="brier")
    objective = Objective("leave-one-out", complexity_weight="1/n", loss="brier", shrinkage=1.0)
    assert choice.value == pytest.approx(objective(Hyperparameters(choice.kernel, choice.ridge), data()).value)
    assert all("brier" in step.stage for step in choice.history)


def test_auto_frees_the_length_scales_after_the_isotropic_stage():
    choice = run(Gaussian([1.0, 1.0]), learn="auto")
    first, last = choice.history[0].hyperparameters, choice.history[-1].hyperparameters
    assert np.shape(first["kernel.lengthscale"]) == ()
    assert np.shape(last["kernel.lengthscale"]) == (2,)


def test_auto_is_repeatable():
    first, second = (run(Gaussian("median", ard=True), learn="auto", max_iter=4) for _ in range(2))
    assert first.ridge == second.ridge


def test_auto_of_many_rows_learns_on_a_sample_and_keeps_the_absolute_ridge(monkeypatch):
    monkeypatch.setattr("kernelwright.learning.recipes.COARSE_ROWS", 20)
    monkeypatch.setattr("kernelwright.learning.recipes.FINE_ROWS", 40)
    choice = run(Gaussian("median"), learn="auto")
    last_on_the_sample = float(choice.history[-1].hyperparameters["ridge"])
    assert choice.ridge * N == pytest.approx(last_on_the_sample * 40, rel=1e-2)


def test_a_warm_start_refines_without_tying():
    choice = run(Gaussian([1.0, 2.0]), learn="auto", warm=True, ridge=0.02)
    np.testing.assert_allclose(choice.history[0].hyperparameters["kernel.lengthscale"], [1.0, 2.0])
    assert float(choice.history[0].hyperparameters["ridge"]) == pytest.approx(0.02)


# Being stopped -----------------------------------------------------------------------------------------------


def raise_once(step: int, error: BaseException):
    calls = []

    def callback(_):
        calls.append(1)
        if len(calls) == step:
            raise error

    return callback, calls


@pytest.mark.parametrize("learn", ["rademacher", "leave-one-out", "auto", "cross-validation"])
def test_a_callback_stops_every_way_of_learning_at_once(learn):
    callback, calls = raise_once(3, StopIteration())
    choice = run(Gaussian("median", ard=True), learn=learn, callback=callback)
    assert len(calls) == 3
    assert len(choice.history) == 3


@pytest.mark.parametrize("learn", ["rademacher", "leave-one-out", "auto", "cross-validation"])
def test_ctrl_c_stops_every_way_of_learning_at_once_and_keeps_the_best(learn):
    callback, calls = raise_once(3, KeyboardInterrupt())

    def learned() -> Choice:
        try:
            return run(Gaussian("median", ard=True), learn=learn, callback=callback)
        except KeyboardInterrupt:  # passed on, it would stop pytest itself
            pytest.fail("Ctrl-C was passed on.")

    with pytest.warns(UserWarning, match="Interrupted after 3"):
        choice = learned()
    assert len(calls) == 3
    assert choice.value <= min(step.objective for step in choice.history)


@pytest.mark.parametrize("learn", ["leave-one-out", "auto", "cross-validation"])
def test_callbacks_see_every_step(learn):
    seen = []
    choice = run(Gaussian("median"), learn=learn, callback=seen.append)
    assert seen == choice.history
