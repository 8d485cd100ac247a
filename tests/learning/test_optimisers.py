"""The training loop: it goes down, keeps the best, tells what it saw, and can be stopped."""

import copy
import math

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.kernels.vector import LengthScale
from kernelwright.learning.optimisers import LBFGS, Adam, train
from kernelwright.objectives import Hyperparameters, Objective
from kernelwright.parameters import plain_values

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
LABELS = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
DATA = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, 2))
OBJECTIVES = [
    Objective("rademacher", complexity_weight="4e/n"),
    Objective("leave-one-out", complexity_weight="1/n", loss="brier", shrinkage=1.0),
    Objective("held-out"),
    Objective("folds", loss="brier", folds=3),
]
LOO = OBJECTIVES[1]

each_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
each_optimizer = pytest.mark.parametrize(
    "optimizer", [LBFGS(max_iter=15), Adam(max_iter=25)], ids=lambda optimizer: type(optimizer).__name__
)


def start() -> Hyperparameters:
    return Hyperparameters(Gaussian([2.0, 2.0, 2.0]), 0.1)


def value_of(objective: Objective, hyper: Hyperparameters) -> float:
    return objective(hyper, DATA).value


def at(values: dict[str, np.ndarray]) -> Hyperparameters:
    return Hyperparameters(Gaussian(values["kernel.lengthscale"]), float(values["ridge"]))


class Watched:
    """An objective that remembers on which points it was evaluated, and may fail."""

    def __init__(self, objective: Objective, fail=lambda hyper, calls: None) -> None:
        self.objective, self.fail, self.seen = objective, fail, []

    def __call__(self, hyper, data, workspace=None):
        self.seen.append(data.points)
        self.fail(hyper, len(self.seen))
        return self.objective(hyper, data)


# Going down --------------------------------------------------------------------------------------------------


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


def test_adam_keeps_the_best_of_a_wild_history():
    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=Adam(max_iter=20, learning_rate=3.0))
    values = [step.objective for step in result.history]
    assert values[-1] > min(values)  # it did leave the best point
    assert result.value == min(values)
    assert value_of(LOO, hyper) == pytest.approx(min(values), rel=1e-12)


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


# Adam by hand ------------------------------------------------------------------------------------------------


def unconstrained(hyper: Hyperparameters) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in hyper.parameters()])


def at_unconstrained(theta: np.ndarray) -> Hyperparameters:
    hyper = start()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(theta), hyper.parameters())
    return hyper


def differences(theta: np.ndarray, size: float = 1e-5) -> np.ndarray:
    """The gradient of the objective by central differences."""
    steps = size * np.eye(len(theta))
    return np.array(
        [(value_of(LOO, at_unconstrained(theta + s)) - value_of(LOO, at_unconstrained(theta - s))) for s in steps]
    ) / (2 * size)


def adam_points(theta: np.ndarray, n_steps: int, gradient, rate: float = 0.1) -> list[np.ndarray]:
    """The start and each of the next points of Adam, by Algorithm 1 of Kingma and Ba (2015)."""
    points, m, v = [theta], np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, n_steps + 1):
        g = gradient(points[-1])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        points.append(points[-1] - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8))
    return points


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_adam_sees_and_keeps_the_point_after_its_last_step(max_iter):
    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=Adam(max_iter=max_iter))
    points = adam_points(unconstrained(start()), max_iter, differences)
    values = [value_of(LOO, at_unconstrained(point)) for point in points]
    assert values[-1] == min(values)  # the last step gains, so that to lose it would show
    np.testing.assert_allclose([step.objective for step in result.history], values, rtol=1e-6)
    np.testing.assert_allclose(unconstrained(hyper), points[-1], rtol=1e-5)
    assert result.value == pytest.approx(values[-1], rel=1e-6)


def test_adam_on_batches_keeps_the_point_after_its_last_step():
    hyper, rows = start(), []

    def on_batch(theta):
        evaluation = LOO(at_unconstrained(theta), DATA.subset(rows[0]))
        return np.concatenate([evaluation.gradients[name].numpy().ravel() for name, _ in hyper.named_parameters()])

    train(LOO, hyper, DATA, optimizer=Adam(max_iter=1, batch_size=10, generator=torch.Generator().manual_seed(0)))
    rows.append(torch.randperm(N, generator=torch.Generator().manual_seed(0))[:10])
    np.testing.assert_allclose(unconstrained(hyper), adam_points(unconstrained(start()), 1, on_batch)[-1], rtol=1e-12)


def test_a_last_step_that_loses_is_not_kept():
    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=Adam(max_iter=1, learning_rate=20.0))
    first, last = (step.objective for step in result.history)
    assert first < last
    assert result.value == first == value_of(LOO, hyper)


def test_adam_that_ran_out_of_patience_has_seen_its_last_step():
    result = train(LOO, start(), DATA, optimizer=Adam(max_iter=500, learning_rate=3.0, patience=3))
    values = [step.objective for step in result.history]
    assert "for 3 steps" in result.message
    assert result.n_iter == int(np.argmin(values[:-1])) + 1 + 3 + 1
    assert result.value == min(values)


def test_a_last_step_that_cannot_be_evaluated_is_not_kept():
    def fail(_, calls):
        if calls == 4:
            raise NumericalError("too far")

    hyper = start()
    result = train(Watched(LOO, fail), hyper, DATA, optimizer=Adam(max_iter=3))
    assert result.n_iter == 3
    assert "last step" in result.message
    assert "too far" in result.message
    assert result.value == min(step.objective for step in result.history) == value_of(LOO, hyper)


def test_a_batch_that_cannot_be_evaluated_leaves_the_newest_point_that_could():
    def fail(_, calls):
        if calls == 4:
            raise NumericalError("too far")

    hyper = start()
    generator = torch.Generator().manual_seed(0)
    result = train(Watched(LOO, fail), hyper, DATA, optimizer=Adam(max_iter=9, batch_size=20, generator=generator))
    assert result.n_iter == 3
    for name, value in plain_values(hyper).items():
        np.testing.assert_array_equal(value, result.history[-1].hyperparameters[name])


@pytest.mark.parametrize("how", [StopIteration(), KeyboardInterrupt()], ids=["callback", "Ctrl-C"])
@pytest.mark.filterwarnings("ignore:Interrupted")
def test_adam_may_be_stopped_after_its_last_step(how):
    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=Adam(max_iter=3), callback=raise_at(4, how))
    assert result.stopped
    assert result.n_iter == 4
    assert result.value == result.history[-1].objective == value_of(LOO, hyper)


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


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_adam_takes_the_steps_it_was_given_after_the_start(max_iter):
    watched = Watched(LOO)
    assert train(watched, start(), DATA, optimizer=Adam(max_iter=max_iter)).n_iter == max_iter + 1
    assert len(watched.seen) == max_iter + 1


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_lbfgs_takes_at_most_the_steps_it_was_given_after_the_start(max_iter):
    assert train(LOO, start(), DATA, optimizer=LBFGS(max_iter=max_iter)).n_iter <= max_iter + 1


def test_lbfgs_goes_down_at_every_step():
    values = [step.objective for step in train(LOO, start(), DATA, optimizer=LBFGS(max_iter=15)).history]
    assert (np.diff(values) <= 1e-12).all()


@each_optimizer
def test_the_callback_sees_every_step(optimizer):
    seen = []
    result = train(LOO, start(), DATA, optimizer=optimizer, callback=seen.append)
    assert seen == result.history


def test_adam_stops_when_it_no_longer_falls():
    result = train(LOO, start(), DATA, optimizer=Adam(max_iter=500, patience=5, tol=1e-4))
    assert result.n_iter < 500
    assert "has not fallen by 0.0001 for 5 steps" in result.message


# Being stopped -----------------------------------------------------------------------------------------------


def raise_at(step: int, error: BaseException):
    calls = []

    def callback(_):
        calls.append(1)
        if len(calls) == step:
            raise error

    return callback


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


# Numerical failures ------------------------------------------------------------------------------------------


def test_lbfgs_comes_back_from_a_step_too_far():
    wall = 1.2 * float(start().kernel.lengthscale.detach().max())

    def fail(hyper, _):
        if float(hyper.kernel.lengthscale.detach().max()) > wall:
            raise NumericalError("too far")

    hyper = start()
    result = train(Watched(LOO, fail), hyper, DATA, optimizer=LBFGS(max_iter=20))
    assert math.isfinite(result.value)
    assert result.value <= value_of(LOO, start())
    assert float(hyper.kernel.lengthscale.detach().max()) <= wall
    assert all(float(np.max(step.hyperparameters["kernel.lengthscale"])) <= wall for step in result.history)


@each_optimizer
def test_a_failure_at_the_start_is_passed_on(optimizer):
    def fail(*_):
        raise NumericalError("at the start")

    with pytest.raises(NumericalError, match="at the start"):
        train(Watched(LOO, fail), start(), DATA, optimizer=optimizer)


# Mini-batches ------------------------------------------------------------------------------------------------


def batches_of(order: str, size: int, steps: int, seed: int = 0) -> list[list[int]]:
    """Row numbers of each step's batch."""
    watched = Watched(Objective("rademacher", complexity_weight="4e/n"))
    generator = torch.Generator().manual_seed(seed)
    optimizer = Adam(max_iter=steps, batch_size=size, batches=order, generator=generator)
    train(watched, start(), DATA, optimizer=optimizer)
    place = {tuple(row): i for i, row in enumerate(X.tolist())}
    return [[place[tuple(row)] for row in points.tolist()] for points in watched.seen]


each_order = pytest.mark.parametrize("order", ["random", "sequential"])


@each_order
def test_batches_have_distinct_rows_of_the_given_number(order):
    for rows in batches_of(order, size=8, steps=7):
        assert len(rows) == len(set(rows)) == 8


@each_order
def test_batches_are_decided_by_the_generator(order):
    assert batches_of(order, 8, 7, seed=3) == batches_of(order, 8, 7, seed=3)
    assert batches_of(order, 8, 7, seed=3) != batches_of(order, 8, 7, seed=4)


def test_sequential_batches_visit_every_row_once_an_epoch():
    batches = batches_of("sequential", size=10, steps=6)
    assert sorted(row for rows in batches[:3] for row in rows) == list(range(N))
    assert sorted(row for rows in batches[3:] for row in rows) == list(range(N))
    assert batches[:3] != batches[3:]


@each_order
def test_training_on_batches_is_repeatable_and_touches_no_global_state(order):
    before = torch.get_rng_state()
    ends = []
    for _ in range(2):
        hyper = start()
        generator = torch.Generator().manual_seed(5)
        train(LOO, hyper, DATA, optimizer=Adam(max_iter=10, batch_size=12, batches=order, generator=generator))
        ends.append(plain_values(hyper))
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name])
    assert torch.equal(torch.get_rng_state(), before)


@each_order
def test_training_on_batches_goes_down_on_all_rows(order):
    hyper = start()
    generator = torch.Generator().manual_seed(0)
    train(LOO, hyper, DATA, optimizer=Adam(max_iter=60, batch_size=20, batches=order, generator=generator))
    assert value_of(LOO, hyper) < value_of(LOO, start())


@pytest.mark.parametrize("size", [N, N + 5])
def test_a_batch_of_all_rows_is_no_batch(size):
    whole, batch = start(), start()
    train(LOO, whole, DATA, optimizer=Adam(max_iter=6))
    train(LOO, batch, DATA, optimizer=Adam(max_iter=6, batch_size=size))
    for name, value in plain_values(whole).items():
        np.testing.assert_array_equal(plain_values(batch)[name], value)


# Bounds and frozen parameters --------------------------------------------------------------------------------


class Narrow(Gaussian):
    """A kernel whose best length scales lie outside of what is allowed."""

    lengthscale = LengthScale(1.9, 2.1)


@pytest.mark.parametrize(
    "optimizer",
    [LBFGS(max_iter=30), Adam(max_iter=30, learning_rate=0.5)],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_steps_stay_within_the_bounds(optimizer):
    result = train(LOO, Hyperparameters(Narrow([2.0, 2.0, 2.0]), 0.1), DATA, optimizer=optimizer)
    lengths = np.array([step.hyperparameters["kernel.lengthscale"] for step in result.history])
    assert lengths.min() == pytest.approx(1.9, rel=1e-12)  # they do push against the bounds
    assert lengths.max() == pytest.approx(2.1, rel=1e-12)


def test_a_start_outside_the_bounds_is_moved_to_them():
    hyper = Hyperparameters(Gaussian(1.0), 1e6)
    result = train(LOO, hyper, DATA, optimizer=LBFGS(max_iter=3))
    assert float(result.history[0].hyperparameters["ridge"]) == pytest.approx(1e4)


@each_optimizer
@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_length_scales_that_start_outside_the_bounds_are_not_lost(size, optimizer):
    """As those at a median distance do, on inputs of such a size."""
    data = TrainingSet.of(size * DATA.points, DATA.targets)
    hyper = Hyperparameters(Gaussian([2.0 * size] * 3), 0.1)
    before = LOO(hyper, data).value
    result = train(LOO, hyper, data, optimizer=optimizer)
    np.testing.assert_allclose(result.history[0].hyperparameters["kernel.lengthscale"], 2.0 * size)
    assert LOO(hyper, data).value == pytest.approx(result.value, rel=1e-12)
    assert result.value < before


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
