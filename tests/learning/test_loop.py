"""The training loop decreases the objective, keeps the best point, records its steps, and can be stopped."""

import copy

import numpy as np
import pytest
import torch

from kernelwright.errors import NumericalError
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.learning import LBFGS, Adam, train
from kernelwright.objectives import Hyperparameters
from kernelwright.parameters import plain_values
from tests.learning.problem import DATA, LOO, OBJECTIVES, Watched, at, each_optimizer, raise_at, start, value_of

each_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: type(objective).__name__)


@each_objective
@each_optimizer
def test_the_objective_falls(objective, optimizer):
    hyper = start()
    result = train(objective, hyper, DATA, optimizer=optimizer)
    assert result.value < value_of(objective, start()) - 1e-3


@each_objective
@each_optimizer
def test_hyperparameters_end_at_the_value_that_is_reported(objective, optimizer):
    hyper = start()
    result = train(objective, hyper, DATA, optimizer=optimizer)
    assert value_of(objective, hyper) == pytest.approx(result.value, rel=1e-12)


@pytest.mark.parametrize(
    "optimizer",
    [Adam(max_iter=1), Adam(max_iter=8, learning_rate=5.0), LBFGS(max_iter=1), LBFGS(max_iter=2, tol=10.0)],
    ids=str,
)
def test_the_end_is_never_worse_than_the_start(optimizer):
    hyper = start()
    train(LOO, hyper, DATA, optimizer=optimizer)
    assert value_of(LOO, hyper) <= value_of(LOO, start())


@each_optimizer
def test_the_best_point_is_kept(optimizer):
    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=optimizer)
    assert result.value <= min(step.objective for step in result.history)


def test_both_optimizers_find_the_same_optimum():
    first, second = start(), start()
    one = train(LOO, first, DATA, optimizer=LBFGS(max_iter=200, tol=1e-12))
    other = train(LOO, second, DATA, optimizer=Adam(max_iter=300, learning_rate=0.05))
    assert one.value == pytest.approx(other.value, rel=1e-3)
    assert one.value <= other.value + 1e-8
    assert one.n_iter < 0.3 * other.n_iter


def test_no_point_near_the_optimum_is_better():
    hyper = start()
    best = train(LOO, hyper, DATA, optimizer=LBFGS(max_iter=300, tol=1e-14)).value
    for name, parameter in hyper.named_parameters():
        for place in range(parameter.numel()):
            for step in (-0.02, 0.02):
                near = copy.deepcopy(hyper)
                with torch.no_grad():
                    near.get_parameter(name).view(-1)[place] += step
                assert value_of(LOO, near) > best - 1e-9


# What is told ------------------------------------------------------------------------------------------------


@each_optimizer
def test_history_starts_at_the_start(optimizer):
    result = train(LOO, start(), DATA, optimizer=optimizer)
    assert result.history[0].objective == pytest.approx(value_of(LOO, start()), rel=1e-12)
    for name, value in plain_values(start()).items():
        np.testing.assert_allclose(result.history[0].hyperparameters[name], value, rtol=1e-12)


@each_optimizer
def test_each_step_of_the_history_is_the_objective_at_its_hyperparameters(optimizer):
    result = train(LOO, start(), DATA, optimizer=optimizer)
    for step in result.history:
        assert step.hyperparameters.keys() == {"ridge", "kernel.lengthscale"}
        again = LOO(at(step.hyperparameters), DATA)
        assert step.objective == pytest.approx(again.value, rel=1e-9)
        assert step.loss == pytest.approx(again.loss, rel=1e-9)
        assert step.complexity == pytest.approx(again.complexity, rel=1e-9)


@each_optimizer
def test_the_number_of_iterations_is_that_of_the_history(optimizer):
    result = train(LOO, start(), DATA, optimizer=optimizer)
    assert result.n_iter == len(result.history) > 3
    assert isinstance(result.message, str)
    assert result.message


@each_optimizer
def test_the_callback_sees_every_step(optimizer):
    seen = []
    result = train(LOO, start(), DATA, optimizer=optimizer, callback=seen.append)
    assert seen == result.history


# Being stopped -----------------------------------------------------------------------------------------------


@each_optimizer
@pytest.mark.parametrize("step", [1, 4])
def test_a_callback_may_stop(optimizer, step):
    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=optimizer, callback=raise_at(step, StopIteration("Enough.")))
    assert result.n_iter == step
    assert "callback" in result.message.lower()
    assert result.value <= min(s.objective for s in result.history)
    assert value_of(LOO, hyper) == pytest.approx(result.value, rel=1e-12)


@each_optimizer
@pytest.mark.parametrize("step", [1, 4])
def test_ctrl_c_keeps_the_best_point_with_a_warning(optimizer, step):
    hyper = start()
    with pytest.warns(UserWarning, match=f"Interrupted after {step} steps; the best hyperparameters so far are kept"):
        result = train(LOO, hyper, DATA, optimizer=optimizer, callback=raise_at(step, KeyboardInterrupt()))
    assert result.n_iter == step
    assert "Interrupted" in result.message
    assert value_of(LOO, hyper) == pytest.approx(result.value, rel=1e-12)
    assert result.value <= value_of(LOO, start())


@each_optimizer
def test_ctrl_c_in_the_middle_of_an_evaluation_keeps_the_best_point(optimizer):
    def fail(_, calls):
        if calls == 6:
            raise KeyboardInterrupt

    hyper = start()
    with pytest.warns(UserWarning, match="Interrupted"):
        result = train(Watched(LOO, fail), hyper, DATA, optimizer=optimizer)
    assert value_of(LOO, hyper) == pytest.approx(result.value, rel=1e-12)


@each_optimizer
def test_ctrl_c_before_the_first_step_is_passed_on(optimizer):
    def fail(_, calls):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(Watched(LOO, fail), start(), DATA, optimizer=optimizer)


@each_optimizer
def test_other_errors_of_a_callback_are_passed_on(optimizer):
    with pytest.raises(RuntimeError, match="mine"):
        train(LOO, start(), DATA, optimizer=optimizer, callback=raise_at(2, RuntimeError("mine")))


@each_optimizer
def test_a_failure_at_the_start_is_passed_on(optimizer):
    def fail(*_):
        raise NumericalError("at the start")

    with pytest.raises(NumericalError, match="at the start"):
        train(Watched(LOO, fail), start(), DATA, optimizer=optimizer)


# Frozen parameters -------------------------------------------------------------------------------------------


@each_optimizer
def test_a_frozen_parameter_does_not_move(optimizer):
    hyper = Hyperparameters(2.0 * Gaussian(1.5) + Laplace(2.0), 0.1)
    hyper.kernel.left.kernel.log_lengthscale.requires_grad_(False)
    train(LOO, hyper, DATA, optimizer=optimizer)
    values = plain_values(hyper)
    assert float(values["kernel.left.kernel.lengthscale"]) == pytest.approx(1.5, rel=1e-14)
    assert float(values["kernel.right.lengthscale"]) != pytest.approx(2.0, rel=1e-3)


@each_optimizer
def test_the_ridge_may_be_frozen(optimizer):
    hyper = start()
    hyper.log_ridge.requires_grad_(False)
    result = train(LOO, hyper, DATA, optimizer=optimizer)
    assert float(hyper.ridge.detach()) == pytest.approx(0.1, rel=1e-14)
    assert result.value < value_of(LOO, start())


# Any way to take steps ---------------------------------------------------------------------------------------


def test_a_way_to_take_steps_needs_only_run():
    class Once:
        def run(self, journal):
            assert journal.parameters().keys() == {"log_ridge", "kernel.log_lengthscale"}
            journal.record(journal.evaluate())
            with torch.no_grad():
                for parameter in journal.parameters().values():
                    parameter.add_(100.0)
            return "One look."

    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=Once(), stage="first")
    assert (result.n_iter, result.message, result.stopped) == (1, "One look.", False)
    assert result.history[0].stage == "first"
    assert value_of(LOO, hyper) == result.value == value_of(LOO, start())  # back at the best point


def test_batches_are_recorded_as_the_newest_point():
    seen = []

    class Batches:
        def run(self, journal):
            for rows in (torch.arange(10), torch.arange(10, 20)):
                evaluation = journal.evaluate(rows)
                journal.record(evaluation, whole=False)
                seen.append(evaluation.value)
            return "Two batches."

    result = train(LOO, start(), DATA, optimizer=Batches(), batch_size=10)
    assert seen == [LOO(start(), DATA.subset(torch.arange(a, a + 10))).value for a in (0, 10)]
    assert result.value == seen[-1]
