"""L-BFGS-B and Adam: their steps, mini-batches, bounds."""

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

from kernelwright.embedding import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.kernels import Gaussian
from kernelwright.kernels.vector import LengthScale
from kernelwright.learning import LBFGS, Adam, train
from kernelwright.objectives import Hyperparameters, objective_named
from kernelwright.parameters import plain_values
from tests.learning.problem import DATA, LOO, N, Watched, X, each_optimizer, raise_at, start, value_of

# Adam by hand ------------------------------------------------------------------------------------------------


def test_adam_keeps_the_best_of_a_wild_history():
    hyper = start()
    result = train(LOO, hyper, DATA, optimizer=Adam(max_iter=20, learning_rate=3.0))
    values = [step.objective for step in result.history]
    assert values[-1] > min(values)  # it did leave the best point
    assert result.value == min(values)
    assert value_of(LOO, hyper) == pytest.approx(min(values), rel=1e-12)


def unconstrained(hyper: Hyperparameters) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in hyper.parameters()])


def at_unconstrained(theta: np.ndarray) -> Hyperparameters:
    hyper = start()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(theta), hyper.parameters())
    return hyper


def differences(theta: np.ndarray, size: float = 1e-5) -> np.ndarray:
    """Compute the gradient of the objective by central differences."""
    steps = size * np.eye(len(theta))
    return np.array(
        [(value_of(LOO, at_unconstrained(theta + s)) - value_of(LOO, at_unconstrained(theta - s))) for s in steps]
    ) / (2 * size)


def adam_points(theta: np.ndarray, n_steps: int, gradient, rate: float = 0.1) -> list[np.ndarray]:
    """Return the points that Adam visits, by Algorithm 1 of Kingma and Ba (2015)."""
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

    train(LOO, hyper, DATA, optimizer=Adam(max_iter=1), batch_size=10, generator=torch.Generator().manual_seed(0))
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
    result = train(Watched(LOO, fail), hyper, DATA, optimizer=Adam(max_iter=9), batch_size=20, generator=generator)
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


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_adam_takes_the_steps_it_was_given_after_the_start(max_iter):
    watched = Watched(LOO)
    assert train(watched, start(), DATA, optimizer=Adam(max_iter=max_iter)).n_iter == max_iter + 1
    assert len(watched.seen) == max_iter + 1


def test_adam_stops_when_it_no_longer_falls():
    result = train(LOO, start(), DATA, optimizer=Adam(max_iter=500, patience=5, tol=1e-4))
    assert result.n_iter < 500
    assert "has not fallen by 0.0001 for 5 steps" in result.message


# L-BFGS-B ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_lbfgs_takes_at_most_the_steps_it_was_given_after_the_start(max_iter):
    assert train(LOO, start(), DATA, optimizer=LBFGS(max_iter=max_iter)).n_iter <= max_iter + 1


def test_lbfgs_goes_down_at_every_step():
    values = [step.objective for step in train(LOO, start(), DATA, optimizer=LBFGS(max_iter=15)).history]
    assert (np.diff(values) <= 1e-12).all()


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


def test_lbfgs_takes_no_batches():
    with pytest.raises(ValueError, match=r"all rows at once and cannot take batch_size; use optimizer=Adam\(\)"):
        train(LOO, start(), DATA, optimizer=LBFGS(), batch_size=10)


# Mini-batches ------------------------------------------------------------------------------------------------


def batches_of(order: str, size: int, steps: int, seed: int = 0) -> list[list[int]]:
    """Return the row numbers of the mini-batch of each step."""
    watched = Watched(objective_named("rademacher", complexity_weight="4e/n"))
    generator = torch.Generator().manual_seed(seed)
    optimizer = Adam(max_iter=steps, batch_order=order)
    train(watched, start(), DATA, optimizer=optimizer, batch_size=size, generator=generator)
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
        train(LOO, hyper, DATA, optimizer=Adam(max_iter=10, batch_order=order), batch_size=12, generator=generator)
        ends.append(plain_values(hyper))
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name])
    assert torch.equal(torch.get_rng_state(), before)


@each_order
def test_training_on_batches_goes_down_on_all_rows(order):
    hyper = start()
    generator = torch.Generator().manual_seed(0)
    train(LOO, hyper, DATA, optimizer=Adam(max_iter=60, batch_order=order), batch_size=20, generator=generator)
    assert value_of(LOO, hyper) < value_of(LOO, start())


@pytest.mark.parametrize("size", [N, N + 5])
def test_a_batch_of_all_rows_is_no_batch(size):
    whole, batch = start(), start()
    train(LOO, whole, DATA, optimizer=Adam(max_iter=6))
    train(LOO, batch, DATA, optimizer=Adam(max_iter=6), batch_size=size)
    for name, value in plain_values(whole).items():
        np.testing.assert_array_equal(plain_values(batch)[name], value)


# Bounds ------------------------------------------------------------------------------------------------------


class Narrow(Gaussian):
    """A kernel whose best length scales are outside the allowed range."""

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


# Settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [
        (LBFGS(0), "max_iter"),
        (LBFGS(tol=-1.0), "tol"),
        (Adam(0.0), "learning_rate"),
        (Adam(max_iter=2.5), "max_iter"),
        (Adam(patience=0), "patience"),
        (Adam(batch_order="sorted"), "batch_order"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_settings_that_make_no_sense_are_refused_by_name(optimizer, name):
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {type(optimizer).__name__} must be"):
        optimizer.checked()


def test_an_optimiser_is_cloned_with_its_settings():
    assert clone(Adam(0.3, 7, 2, tol=0.1, batch_order="sequential")).get_params() == {
        "learning_rate": 0.3,
        "max_iter": 7,
        "patience": 2,
        "tol": 0.1,
        "batch_order": "sequential",
    }
