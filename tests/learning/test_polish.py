"""The last step of the recipe for many rows."""

import copy

import numpy as np
import pytest
import torch

from kernelwright import EmbeddingClassifier, features
from kernelwright.embedding import TrainingSet, embed
from kernelwright.kernels import ConvexSum, FeatureKernel, Gaussian, Laplace, Linear, Tabular
from kernelwright.learning import Auto, Choice, LearningTask
from kernelwright.learning.polish import Neighbourhood, descend, neighbourhoods, polish, stretched
from kernelwright.objectives.losses import BRIER

RNG = np.random.default_rng(0)


def waves(n: int, period: float = 0.1, noise: float = 0.1, seed: int = 0, **how) -> TrainingSet:
    """Return rows on a line whose targets are a wave with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 1))
    y = np.sin(2 * np.pi * x / period) + noise * rng.normal(size=(n, 1))
    strata = torch.zeros(n, dtype=torch.int64)
    return TrainingSet.of(torch.from_numpy(x), torch.from_numpy(y), strata=strata, **how)


def task(kernel, data: TrainingSet, **how) -> LearningTask:
    how = {"loss": BRIER} | how
    return LearningTask(copy.deepcopy(kernel), data, "auto", torch.Generator().manual_seed(0), **how)


def chosen(kernel, ridge: float) -> Choice:
    return Choice(kernel, ridge, np.nan, [], "")


def error(choice: Choice, data: TrainingSet, new: TrainingSet) -> float:
    """Return the squared error at new rows."""
    with torch.no_grad():
        coefficients = embed(choice.kernel.matrix(data.points), data, choice.ridge).coefficients
        return float((choice.kernel.forward(new.points, data.points) @ coefficients - new.targets).square().mean())


def by_refitting(part: Neighbourhood, kernel, noise: float) -> torch.Tensor:
    """Return the output at each row by the embedding of the other rows, with the same landmarks."""
    points, found = part.rows.points, []
    basis = points if part.landmarks is None else points[part.landmarks]
    with torch.no_grad():
        for i in range(len(points)):
            rest = torch.arange(len(points)) != i
            K = kernel.forward(points[rest], points[rest] if part.landmarks is None else basis)
            w, t = part.rows.weights[rest][:, None], part.rows.centred[rest]
            own = points[rest] if part.landmarks is None else basis
            S = K.T @ (w * K) + noise * kernel.forward(own)
            alpha = torch.linalg.lstsq(S, K.T @ (w * t)).solution
            found.append(kernel.forward(points[[i]], own)[0] @ alpha + part.rows.prior)
    return torch.stack(found)


@pytest.mark.parametrize("landmarks", [None, torch.tensor([0, 3, 7, 11, 19])])
def test_left_out_outputs_are_those_of_refitting(landmarks):
    rows = waves(25, weights=torch.from_numpy(RNG.uniform(0.5, 2.0, 25)))
    part, kernel, noise = Neighbourhood(rows, landmarks), Laplace(0.3), 0.2
    with torch.no_grad():
        outputs, left = part.left_out(part.features(kernel), noise / rows.total_weight)
    expected = by_refitting(part, kernel, noise)
    if landmarks is not None:  # a landmark is not like a new row, and is not judged
        new = [i for i in range(25) if i not in landmarks]
        expected, rows = expected[new], rows.subset(torch.tensor(new))
    assert torch.equal(left.targets, rows.targets)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_stretched_kernels_see_points_that_are_closer_together():
    X = torch.from_numpy(RNG.normal(size=(9, 4)))
    for kernel in (Gaussian([1.0, 2.0, 3.0, 4.0]), Tabular(1.5, smooth=2.0), ConvexSum([Laplace(2.0), Gaussian(0.5)])):
        with torch.no_grad():
            np.testing.assert_allclose(stretched(kernel, 3.0).forward(3.0 * X), kernel.forward(X), rtol=1e-12)


def test_frozen_length_scales_stay():
    kernel = Gaussian(2.0).requires_grad_(False)
    assert float(stretched(kernel, 3.0).lengthscale) == pytest.approx(2.0)


def test_a_neighbourhood_holds_the_nearest_rows():
    data = waves(3000)
    for part in neighbourhoods(task(Gaussian(0.1), data), Gaussian(0.1)):
        x, everywhere = part.rows.points[:, 0].sort().values, data.points[:, 0].sort().values
        first = int(torch.searchsorted(everywhere, x[0]))
        assert torch.equal(everywhere[first : first + len(x)], x)  # no gaps: the density of all rows


def test_landmarks_of_a_neighbourhood_are_as_dense_as_those_of_the_solver():
    parts = neighbourhoods(task(Gaussian(0.1), waves(3000), kept=0.25), Gaussian(0.1))
    assert all(len(part.landmarks) == pytest.approx(0.25 * len(part.rows), abs=1) for part in parts)


def test_descent_finds_the_lowest_place_of_a_valley():
    place, value = descend(lambda at: 5.0 + (at[0] + 2) ** 2 + (at[1] - 3) ** 2)
    assert (place, value) == ((-2, 3), 5.0)


def test_descent_does_not_take_steps_that_are_worth_nothing():
    assert descend(lambda at: 1.0 - 1e-4 * at[0])[0] == (0, 0)
    assert descend(lambda at: float("inf"))[0] == (0, 0)
    assert descend(lambda at: 2.0 + at[0] + at[1])[0] == (-5, -5)  # it does not leave the grid


@pytest.mark.parametrize("factor", [0.05, 8.0])
@pytest.mark.parametrize("kept", [1.0, 0.3])
def test_a_poor_choice_is_mended(factor, kept):
    data, new = waves(2400), waves(1000, seed=1)
    poor = chosen(Gaussian(0.03), factor * 1e3 / 2400)  # far too much noise
    better = polish(poor, task(Gaussian(), data, kept=kept))
    assert error(better, data, new) < 0.8 * error(poor, data, new)
    assert better.history[-1].loss == better.value
    assert "polish" in better.history[-1].stage


def test_length_scales_that_are_too_long_are_mended():
    data, new = waves(2400), waves(1000, seed=1)
    poor = chosen(Gaussian(0.4), 0.1 / 2400)
    assert error(polish(poor, task(Gaussian(), data)), data, new) < 0.2 * error(poor, data, new)


def test_only_the_ridge_is_moved_where_neighbours_may_be_copies():
    data = waves(800)
    found = polish(chosen(Gaussian(0.4), 0.1 / 800), task(Gaussian(), data, stretches=False))
    assert found.kernel.lengthscale.item() == pytest.approx(0.4)
    assert found.ridge < 0.05 / 800


def test_a_kernel_without_length_scales_keeps_its_parameters():
    data = waves(2100, period=10.0)
    found = polish(chosen(Linear(), 1.0), task(Linear(), data))
    assert repr(found.kernel) == repr(Linear())
    assert found.ridge < 1.0


def test_features_and_other_solvers_are_left_alone():
    data = waves(100)
    kernel = FeatureKernel(features.RandomFourier(20))
    assert polish(found := chosen(kernel, 0.1), task(kernel, data)) is found
    assert polish(found := chosen(Gaussian(), 0.1), task(Gaussian(), data, kept=0.0)) is found


def test_groups_are_left_out_as_a_whole():
    # Copies within a group: leaving out single rows would ask for no noise and a tiny length scale.
    rows = waves(200, period=1.0, noise=1.0)
    groups = torch.arange(200).repeat(4)
    data = TrainingSet.of(rows.points.repeat(4, 1) + 1e-6 * torch.arange(800)[:, None], rows.targets.repeat(4, 1))
    start, new = chosen(Gaussian(0.2), 1.0 / 800), waves(1000, period=1.0, noise=1.0, seed=1)
    apart, together = (
        polish(start, task(Gaussian(), TrainingSet.of(data.points, data.targets, groups=names)))
        for names in (None, groups)
    )
    assert error(together, data, new) < error(apart, data, new)


def test_auto_polishes_many_rows_and_can_be_told(monkeypatch):
    monkeypatch.setattr("kernelwright.learning.recipes.POLISHED_FROM", 100)
    X = RNG.uniform(-2, 2, (150, 2))
    y = (np.sin(6 * X[:, 0]) * np.sin(6 * X[:, 1]) > 0).astype(int)

    def stages(n: int, polish) -> list[str]:
        model = EmbeddingClassifier(learn=Auto(max_iter=1, polish=polish), random_state=0).fit(X[:n], y[:n])
        return [step.stage for step in model.history_ if "polish" in step.stage]

    assert len(stages(150, "auto")) == 1
    assert stages(150, False) == []
    assert stages(80, "auto") == []
    assert len(stages(80, True)) == 1


def test_a_callback_sees_the_last_step_and_a_stopped_fit_is_not_polished():
    seen = []
    data = waves(300)
    polish(chosen(Gaussian(0.1), 0.01), task(Gaussian(), data, callback=seen.append))
    assert len(seen) == 1

    def stop(step):
        raise StopIteration

    X = RNG.normal(size=(200, 2))
    model = EmbeddingClassifier(learn=Auto(polish=True), callback=stop).fit(X, (X[:, 0] > 0).astype(int))
    assert not any("polish" in step.stage for step in model.history_)
