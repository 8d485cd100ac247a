"""The library's own recipe, from coarse to fine."""

import copy

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet, embed
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.scaling import TableViews
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian, Tabular
from kernelwright.learning import Auto, Choice, recipes
from kernelwright.objectives import BrierLoss, Hyperparameters, objective_named
from tests.learning.disc import LABELS, N, X, data, run


def accuracy(choice: Choice, rows: TrainingSet) -> float:
    outputs = embed(choice.kernel(rows.points).detach(), rows, choice.ridge).leave_one_out()
    return float((outputs.argmax(1) == rows.strata).double().mean())


def test_auto_improves_on_its_start():
    choice = run(Gaussian(5.0, ard=True), Auto())
    objective = objective_named("leave-one-out", complexity_weight="1/n", loss="calibrated", shrinkage=1.0)
    before = objective(Hyperparameters(Gaussian([5.0, 5.0]), 0.1 / N), data()).value
    after = objective(Hyperparameters(choice.kernel, choice.ridge), data()).value
    assert after < before - 1e-2
    assert choice.value == pytest.approx(after, rel=1e-9)


def test_auto_learns_the_default_kernel_of_a_table():
    views = TableViews().fit_transform(X)
    targets = one_hot(LABELS, 2)
    rows = data(views, prior=ClassTargets(2).prior(targets, torch.ones(N, dtype=torch.float64)))
    choice = run(Tabular(), Auto(), rows)
    assert choice.kernel.lengthscale.shape == (2,)
    assert accuracy(choice, rows) > 0.85


def test_auto_may_return_a_kernel_between_those_of_its_two_stages(monkeypatch):
    rows, stages = data(TableViews().fit_transform(X)), []
    between = recipes._between
    monkeypatch.setattr(recipes, "_between", lambda *given: stages.extend(map(copy.deepcopy, given)) or between(*given))
    free, found = (run(Tabular(), Auto(), rows, average=average) for average in (False, True))
    equal, last, share = stages
    assert share == len(rows) / (len(rows) + 150)
    assert len(set(equal.lengthscale.detach().tolist())) == 1
    assert repr(last) == repr(free.kernel)
    for name, raw in found.kernel.named_parameters():
        expected = share * last.get_parameter(name) + (1 - share) * equal.get_parameter(name)
        np.testing.assert_allclose(raw.detach(), expected.detach(), rtol=1e-12)
    ridges = [float(step.hyperparameters["ridge"]) for step in found.history]
    assert min(*ridges, free.ridge) <= found.ridge <= max(*ridges, free.ridge)


def test_targets_that_are_no_classes_are_learned_by_the_brier_loss_alone():
    choice = run(Gaussian(5.0, ard=True), Auto(), loss=BrierLoss())
    objective = objective_named("leave-one-out", complexity_weight="1/n", loss="brier", shrinkage=1.0)
    assert choice.value == pytest.approx(objective(Hyperparameters(choice.kernel, choice.ridge), data()).value)
    assert all("brier" in step.stage for step in choice.history)


def test_auto_frees_the_length_scales_after_the_isotropic_stage():
    choice = run(Gaussian([1.0, 1.0]), Auto())
    first, last = choice.history[0].hyperparameters, choice.history[-1].hyperparameters
    assert np.shape(first["kernel.lengthscale"]) == ()
    assert np.shape(last["kernel.lengthscale"]) == (2,)


def test_auto_is_repeatable():
    first, second = (run(Gaussian("median", ard=True), Auto(max_iter=4)) for _ in range(2))
    assert first.ridge == second.ridge


def test_auto_of_many_rows_learns_on_a_sample_and_keeps_the_absolute_ridge(monkeypatch):
    monkeypatch.setattr("kernelwright.learning.recipes.COARSE_ROWS", 20)
    monkeypatch.setattr("kernelwright.learning.recipes.FINE_ROWS", 40)
    choice = run(Gaussian("median"), Auto())
    last_on_the_sample = float(choice.history[-1].hyperparameters["ridge"])
    assert choice.ridge * N == pytest.approx(last_on_the_sample * 40, rel=1e-2)


def test_auto_of_very_many_rows_goes_most_of_the_way_on_few_of_them(monkeypatch):
    for name, value in {"MANY": 50, "WORTH_MORE": {50: (40, 9)}, "COARSE_ROWS": 20, "MIDDLE_ROWS": 30}.items():
        monkeypatch.setattr(f"kernelwright.learning.recipes.{name}", value)
    choice = run(Gaussian("median", ard=True), Auto(polish=False, tol=0.0))
    stages = list(dict.fromkeys(step.stage.rsplit(", ")[-1] for step in choice.history))
    assert stages == ["20 rows", "30 rows", "40 rows"]
    last = [step.objective for step in choice.history if step.stage.endswith("40 rows")]
    assert last[-1] <= last[0]
    assert len(last) <= 1 + recipes.LAST_STEPS


def test_a_warm_start_refines_without_tying():
    choice = run(Gaussian([1.0, 2.0]), Auto(), warm=True, ridge=0.02)
    np.testing.assert_allclose(choice.history[0].hyperparameters["kernel.lengthscale"], [1.0, 2.0])
    assert float(choice.history[0].hyperparameters["ridge"]) == pytest.approx(0.02)
