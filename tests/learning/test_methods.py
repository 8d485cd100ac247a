"""Every way to choose hyperparameters runs, improves on its initial values, and can be stopped."""

import inspect
import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

from kernelwright.kernels import Gaussian, Laplace
from kernelwright.learning import (
    LBFGS,
    METHODS,
    Adam,
    Auto,
    Choice,
    CrossValidation,
    EmpiricalRisk,
    Folds,
    Given,
    HeldOut,
    LeaveOneOut,
    Median,
    Rademacher,
    clip_of,
    learning_method,
    methods,
)
from kernelwright.learning.optimisers import Optimizing
from kernelwright.objectives import (
    BrierLoss,
    CalibratedLogLoss,
    ClippedLogLoss,
    EmpiricalRiskObjective,
    FoldsObjective,
    HeldOutObjective,
    Hyperparameters,
    LeaveOneOutObjective,
    RademacherObjective,
    objective_named,
)
from kernelwright.objectives.splits import ShareOfRows
from tests import reference as naive
from tests.learning.disc import N, X, data, raise_once, run

BY_GRADIENT = ["rademacher", "held-out", "leave-one-out", "folds", "regularised-folds", "empirical-risk"]
LOSS = {"leave-one-out": "brier", "folds": "brier", "regularised-folds": "brier"}
FOLDS = {"folds": 5, "regularised-folds": 5}
TAU = {"rademacher": "4e/n", "held-out": "1/n", "leave-one-out": "1/n", "folds": 0.0, "regularised-folds": 1.0}
TAU["empirical-risk"] = 0.0

# Words and settings ------------------------------------------------------------------------------------------

each_method = pytest.mark.parametrize("kind", [*METHODS.values(), Given], ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("word", METHODS)
def test_a_word_is_the_object_with_its_usual_settings(word):
    found = learning_method(word, "Owner")
    assert type(found) is METHODS[word]
    assert found.word == word
    assert found.get_params() == METHODS[word]().get_params()


def test_nothing_is_the_object_that_learns_nothing():
    assert type(learning_method(None, "Owner")) is Given


@each_method
def test_an_object_is_itself_and_a_class_is_refused(kind):
    method = kind(kernel_share=0.5)
    assert learning_method(method, "Owner") is method
    with pytest.raises(TypeError, match=rf"must be an object\. Got a class: use {kind.__name__}\(\)"):
        learning_method(kind, "Owner")


@each_method
def test_settings_are_checked_by_name(kind):
    for name in ("kernel_share", "holdout_share"):
        for bad in (0.0, 1.0, -0.5, "half"):
            with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {kind.__name__} must be"):
                learning_method(kind(**{name: bad}), "Owner")
    wrong = {"complexity_weight": "5e", "epsilon": 0.5, "batch_size": 1, "n_folds": 1, "loss": "hinge"}
    for name, bad in wrong.items():
        if name in inspect.signature(kind).parameters:
            with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {kind.__name__} must be"):
                learning_method(kind(**{name: bad}), "Owner")


@each_method
def test_methods_are_cloned_with_their_settings(kind):
    method = kind(holdout_share=0.25)
    assert clone(method).get_params() == method.get_params()


def test_nested_settings_are_reached_by_name():
    method = Rademacher(optimizer=Adam()).set_params(optimizer__learning_rate=0.7, complexity_weight="1/n")
    assert method.optimizer.learning_rate == 0.7
    assert method.complexity_weight == "1/n"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (Rademacher(0.3, epsilon=0.1), RademacherObjective(0.3, ClippedLogLoss(0.1))),
        (HeldOut(), HeldOutObjective("1/n", folds=ShareOfRows(0.5))),
        (HeldOut(share=0.3), HeldOutObjective("1/n", folds=ShareOfRows(0.3))),
        (LeaveOneOut(loss="calibrated"), LeaveOneOutObjective("1/n", CalibratedLogLoss())),
        (Folds(3, complexity_weight=0.2, loss="log"), FoldsObjective(0.2, ClippedLogLoss(), folds=3)),
        (Folds(N + 5), FoldsObjective(folds=N)),  # no more folds than rows
        (METHODS["empirical-risk"](epsilon=0.2), EmpiricalRiskObjective(loss=ClippedLogLoss(0.2))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_objective_of_a_method(method, expected):
    assert method.objective(data(), None, "double") == expected
    other = method.objective(data(), BrierLoss(), "single")
    assert (other.loss, other.precision) == (BrierLoss(), "single")


@pytest.mark.parametrize(
    ("method", "learns", "rows", "batch"),
    [
        (Given(), False, 0, None),
        (Median(), False, 0, None),
        (Auto(), True, 2000, None),
        (CrossValidation(), True, 8000, None),
        (Rademacher(), True, 8000, None),
        (Rademacher(batch_size=50), True, 50, 50),
    ],
    ids=str,
)
def test_what_methods_say_of_themselves(method, learns, rows, batch):
    assert (method.learns, method.matrix_rows, method.mini_batches) == (learns, rows, batch)


def test_only_the_librarys_own_recipe_shrinks_to_the_frequencies():
    assert [word for word, kind in METHODS.items() if kind.shrinks_to_frequencies] == ["auto"]


# Without learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "ridge"), [("auto", 0.01), (0.3, 0.3)])
def test_nothing_is_learned_where_nothing_is_asked(given, ridge):
    choice = run(Gaussian(1.7), Given(), ridge=given)
    assert repr(choice.kernel) == repr(Gaussian(1.7))
    assert choice.ridge == ridge
    assert math.isnan(choice.value)
    assert choice.history == []


@pytest.mark.parametrize(("kernel", "order"), [(Gaussian(9.0), 2), (Laplace(9.0), 1)], ids=["gaussian", "laplace"])
def test_the_median_heuristic(kernel, order):
    choice = run(kernel, Median(), ridge=0.2)
    assert float(choice.kernel.lengthscale.detach()) == pytest.approx(naive.lower_median_of_distances(X, order))
    assert choice.ridge == 0.2


def test_the_median_heuristic_counts_weights():
    whole = np.random.default_rng(0).integers(1, 4, N)
    choice = run(Gaussian(), Median(), data(weights=torch.from_numpy(whole.astype(float))))
    expected = naive.lower_median_of_distances(np.repeat(X, whole, axis=0), 2)
    assert float(choice.kernel.lengthscale.detach()) == pytest.approx(expected)


# By gradient -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn", BY_GRADIENT)
@pytest.mark.parametrize("optimizer", [LBFGS(30), Adam(max_iter=30)], ids=lambda optimizer: optimizer.word)
def test_gradients_improve_on_the_start(learn, optimizer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the training loss alone asks for a ridge of almost nothing
        choice = run(Gaussian(3.0), METHODS[learn](optimizer=optimizer))
    objective = objective_named(
        learn, complexity_weight=TAU[learn], loss=LOSS.get(learn, "log"), folds=FOLDS.get(learn, 2)
    )
    before = objective(Hyperparameters(Gaussian(3.0), 0.01), data()).value
    after = objective(Hyperparameters(choice.kernel, choice.ridge), data()).value
    assert after < before - 1e-3
    assert choice.value == pytest.approx(after, rel=1e-9)
    assert len(choice.history) > 1


def test_learning_by_gradient_starts_from_the_given_ridge():
    choice = run(Gaussian(3.0), LeaveOneOut(optimizer=LBFGS(2)), ridge=0.3)
    assert float(choice.history[0].hyperparameters["ridge"]) == pytest.approx(0.3)


def test_a_given_complexity_weight_is_used():
    choice = run(Gaussian(3.0), Rademacher(0.01, optimizer=LBFGS(10)))
    objective = objective_named("rademacher", complexity_weight=0.01)
    assert choice.value == pytest.approx(objective(Hyperparameters(choice.kernel, choice.ridge), data()).value)


def test_ard_length_scales_are_learned_one_by_one():
    noise = np.random.default_rng(5).normal(size=(N, 1))
    rows = data(np.hstack([X, noise]))
    choice = run(Gaussian("median", ard=True), LeaveOneOut(), rows)
    lengths = choice.kernel.lengthscale.detach().numpy()
    assert lengths[2] > 1.5 * lengths[:2].max()  # the third column says nothing


@pytest.mark.parametrize("kind", [Rademacher, HeldOut, LeaveOneOut])
def test_the_normalised_loss_with_the_weight_divided_learns_alike(kind):
    """L / M + tau r has the minimum of L + M tau r; the centred loss is lower by one."""
    M = -math.log(0.05)
    plain, normalised, centred = (
        run(Gaussian(3.0), kind(weight, epsilon=0.05, loss=loss))
        for weight, loss in ((0.05, "log"), (0.05 / M, "normalised"), (0.05 / M, "centred"))
    )
    assert normalised.value == pytest.approx(plain.value / M, rel=1e-5)
    assert centred.value == pytest.approx(normalised.value - 1, abs=1e-5)
    assert normalised.ridge == pytest.approx(plain.ridge, rel=0.02)


@pytest.mark.parametrize("kind", [Rademacher, HeldOut, LeaveOneOut, Folds, EmpiricalRisk])
def test_every_cross_entropy_has_its_clip(kind):
    own = kind(loss="log", epsilon=0.05).objective(data(), None, "double")
    assert own.loss == ClippedLogLoss(0.05)
    assert clip_of(kind(epsilon=0.05)) == 0.05
    for bad in (0.0, 1 / math.e, 1.0):
        with pytest.raises(InvalidParameterError, match="'epsilon' parameter"):
            kind(epsilon=bad).checked()


def test_a_method_without_a_clip_has_the_published_one():
    assert clip_of(Given()) == clip_of(Auto()) == clip_of(CrossValidation()) == 1e-15


@pytest.mark.parametrize("learn", [Rademacher, LeaveOneOut])
def test_batches_are_taken_and_repeatable(learn):
    first, second, third = (
        run(Gaussian(3.0), learn(batch_size=15, optimizer=Adam(max_iter=10)), seed=seed) for seed in (0, 0, 1)
    )
    assert len(first.history) == 10
    assert first.ridge == second.ridge
    assert first.ridge != third.ridge


def test_lbfgs_with_batches_is_refused():
    with pytest.raises(ValueError, match=r"L-BFGS works .* cannot take batch_size; use optimizer=Adam\(\)"):
        run(Gaussian(), Rademacher(optimizer="lbfgs", batch_size=10))


def test_an_unknown_way_to_learn_is_refused():
    with pytest.raises(ValueError, match=r"'learn' parameter of Owner must be one of \['auto', .* Got 'luck' instead"):
        learning_method("luck", "Owner")


@pytest.mark.parametrize("word", ["lbfgs", "adam"])
def test_a_word_for_an_optimiser(word):
    found = Rademacher(optimizer=word)
    expected = {"lbfgs": LBFGS, "adam": Adam}[word]
    with_word, with_object = (run(Gaussian(3.0), each) for each in (found, Rademacher(optimizer=expected())))
    assert with_word.ridge == with_object.ridge


def test_an_optimiser_of_ones_own_is_taken():
    class Once(Optimizing):
        word = "once"

        def run(self, journal):
            journal.record(journal.evaluate())
            return "One look."

    choice = run(Gaussian(3.0), learning_method(Rademacher(optimizer=Once()), "Owner"), ridge=0.2)
    assert (choice.message, len(choice.history)) == ("One look.", 1)
    assert choice.ridge == pytest.approx(0.2)


@pytest.mark.parametrize(("optimizer", "used"), [(LBFGS(5), 40), (Adam(1e-9, 3), 20)], ids=["sample", "batches"])
def test_of_many_rows_a_sample_or_mini_batches_are_learned_from(optimizer, used, monkeypatch):
    """What carries over to all rows is n lambda."""
    monkeypatch.setattr(methods, "MANY", 40)
    monkeypatch.setattr(methods, "_usual_batch_size", lambda kernel: 20)
    choice = run(Gaussian(3.0), LeaveOneOut(optimizer=optimizer))
    assert choice.batch_size == (20 if used == 20 else None)
    best = min(choice.history, key=lambda step: step.objective) if used == 40 else choice.history[-1]
    assert choice.ridge * N == pytest.approx(float(best.hyperparameters["ridge"]) * used, rel=1e-6)


def test_many_rows_are_learned_by_mini_batches_unless_it_is_said_otherwise(monkeypatch):
    monkeypatch.setattr(methods, "MANY", 40)
    monkeypatch.setattr(methods, "Adam", lambda: Adam(max_iter=3))
    monkeypatch.setattr(methods, "_usual_batch_size", lambda kernel: 20)
    choice = run(Gaussian(3.0), LeaveOneOut())
    assert (choice.batch_size, len(choice.history)) == (20, 3)


def test_a_batch_size_that_was_given_leaves_the_ridge_as_it_is():
    choice = run(Gaussian(3.0), LeaveOneOut(batch_size=20, optimizer=Adam(1e-9, 3)), ridge=0.2)
    assert choice.batch_size == 20
    assert choice.ridge == pytest.approx(0.2, rel=1e-6)


# Being stopped -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn", ["rademacher", "leave-one-out", "folds", "auto", "cross-validation"])
def test_a_callback_stops_every_way_of_learning_at_once(learn):
    callback, calls = raise_once(3, StopIteration())
    choice = run(Gaussian("median", ard=True), METHODS[learn](), callback=callback)
    assert len(calls) == 3
    assert len(choice.history) == 3


@pytest.mark.parametrize("learn", ["rademacher", "leave-one-out", "folds", "auto", "cross-validation"])
def test_ctrl_c_stops_every_way_of_learning_at_once_and_keeps_the_best(learn):
    callback, calls = raise_once(3, KeyboardInterrupt())

    def learned() -> Choice:
        try:
            return run(Gaussian("median", ard=True), METHODS[learn](), callback=callback)
        except KeyboardInterrupt:  # passed on, it would stop pytest itself
            pytest.fail("Ctrl-C was passed on.")

    with pytest.warns(UserWarning, match="Interrupted after 3"):
        choice = learned()
    assert len(calls) == 3
    assert choice.value <= min(step.objective for step in choice.history)


@pytest.mark.parametrize("learn", ["leave-one-out", "auto", "cross-validation"])
def test_callbacks_see_every_step(learn):
    seen = []
    choice = run(Gaussian("median"), METHODS[learn](), callback=seen.append)
    assert seen == choice.history
