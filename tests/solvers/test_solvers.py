"""Ways to hold an embedding agree where they should, and come close where they approximate."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from kernelwright.solvers.solvers import hold_out

from kernelwright import EmbeddingClassifier, MemoryBudgetError, solvers
from kernelwright.embedding import TrainingSet
from kernelwright.embedding.training_set import smoothed_prior
from kernelwright.errors import NumericalRepairWarning, PrecisionWarning
from kernelwright.features import Polynomial, RandomFourier, fourier_features
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import FeatureKernel, Gaussian
from kernelwright.solvers import choose_solver, exact, explicit, herding, nystroem, sum_up

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
LABELS = (np.hypot(*X.T) > 1.1).astype(int)
NEW = torch.from_numpy(RNG.normal(size=(300, 2)))
TRUTH = (np.hypot(*NEW.numpy().T) > 1.1).astype(int)
KERNEL, RIDGE = Gaussian(0.7), 1e-4


def data() -> TrainingSet:
    Y, w = one_hot(LABELS, 2), torch.ones(N, dtype=torch.float64)
    return TrainingSet.of(torch.from_numpy(X), Y, weights=w, prior=smoothed_prior(Y, w))


def random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def outputs(found, features=None) -> np.ndarray:
    with torch.no_grad():
        values = KERNEL.forward(NEW, found.points) if features is None else features(NEW)
    return (values @ found.coefficients + data().prior).numpy()


def test_almost_all_rows_as_landmarks_are_almost_the_exact_solution():
    expected, found = exact(KERNEL, data(), RIDGE), nystroem(KERNEL, data(), RIDGE, N - 1, random())
    assert len(found.left_out.rows) == pytest.approx(N // 20, abs=2)  # these are held out, not landmarks
    np.testing.assert_allclose(outputs(found), outputs(expected), atol=0.25)
    assert np.abs(outputs(found) - outputs(expected)).mean() < 0.01


@pytest.mark.parametrize("solve", [nystroem, herding], ids=["nystroem", "herding"])
def test_calibration_outputs_have_not_seen_their_targets(solve):
    """With labels that are a coin's toss, outputs at rows that were fitted would look better than a coin."""
    Y, w = one_hot(RNG.integers(0, 2, N), 2), torch.ones(N, dtype=torch.float64)
    noisy = TrainingSet.of(torch.from_numpy(X), Y, weights=w, prior=smoothed_prior(Y, w))
    found = solve(Gaussian(0.1), noisy, 1e-6, 150, random())
    assert float((found.left_out.outputs.argmax(1) == found.left_out.rows.strata).double().mean()) < 0.7


@pytest.mark.parametrize("rows", [7, 64, 10_000])
def test_explicit_features_are_the_exact_solution_of_their_kernel(rows, monkeypatch):
    monkeypatch.setattr(solvers, "FEATURE_ROWS", rows)  # a sum over batches of any size
    features = Polynomial(3)
    features.prepare_(torch.from_numpy(X))
    expected, found = (
        exact(FeatureKernel(features), data(), RIDGE),
        explicit(sum_up(features, data()), features, data(), RIDGE),
    )
    with torch.no_grad():
        dense = features(NEW) @ features(torch.from_numpy(X)).T @ expected.coefficients + data().prior
    np.testing.assert_allclose(outputs(found, features), dense, atol=1e-8)
    np.testing.assert_allclose(found.left_out.outputs, expected.left_out.outputs, atol=1e-8)  # leave-one-out
    assert found.squared_norm == pytest.approx(expected.squared_norm, rel=1e-6)


@pytest.mark.parametrize("solve", [nystroem, herding], ids=["nystroem", "herding"])
def test_few_landmarks_come_close(solve):
    found = solve(KERNEL, data(), RIDGE, 60, random())
    assert len(found.coefficients) == pytest.approx(60, abs=2)
    assert (outputs(found).argmax(1) == TRUTH).mean() > 0.87


def test_herded_rows_are_better_than_random_ones():
    """The mean of a herded subset follows the mean of all rows."""
    found = herding(KERNEL, data(), RIDGE, 20, random())

    def gap(points: torch.Tensor) -> float:
        K = KERNEL.matrix(torch.cat([points, torch.from_numpy(X)]))
        signed = torch.cat([torch.full((len(points),), 1.0 / len(points)), torch.full((N,), -1.0 / N)]).double()
        return float(signed @ K @ signed)

    rivals = [torch.from_numpy(X[np.random.default_rng(s).choice(N, 20, replace=False)]) for s in range(20)]
    assert gap(found.points) < min(gap(points) for points in rivals)


def test_rows_of_great_weight_are_picked_again_and_again():
    """Three points of many rows each, as merging makes them, and a few more: the herded mean is that of the weights."""
    points = torch.cat([torch.tensor([[-4.0, 0.0], [0.0, 0.0], [4.0, 0.0]]), torch.from_numpy(X[:7]).float()]).double()
    weights = torch.tensor([50.0, 20.0, 10.0] + [1.0] * 7, dtype=torch.float64)
    rows = TrainingSet.of(points, one_hot(np.zeros(10, dtype=int), 1), weights=weights)
    found = herding(KERNEL, rows, RIDGE, 9, random())
    of = found.fitted_rows
    assert of.total_weight == pytest.approx(rows.total_weight)
    heavy = of.weights[(of.points == points[0]).all(1)]
    assert float(heavy) == pytest.approx(50.0, abs=10.0)


def test_all_rows_herded_are_the_exact_solution():
    rows = replace(data(), weights=torch.from_numpy(RNG.uniform(0.2, 3.0, N)))
    expected, found = exact(KERNEL, rows, RIDGE), herding(KERNEL, rows, RIDGE, N, random())
    np.testing.assert_allclose(outputs(found), outputs(expected), atol=1e-10)


@pytest.mark.parametrize(("shift", "words"), [(300.0, "change outputs by"), (1e5, "off by"), (1.7e9, "off by")])
def test_landmarks_notice_what_single_precision_cannot_hold(shift, words, monkeypatch):
    """Time stamps, say: seconds since 1970 of single precision are minutes apart."""
    shifted = replace(data(), points=data().points + shift)
    expected = nystroem(KERNEL, shifted, RIDGE, 60, random(), precision="double")
    with pytest.warns(PrecisionWarning, match=f"single precision (are )?{words}"):
        asked = nystroem(KERNEL, shifted, RIDGE, 60, random(), precision="single")
    monkeypatch.setattr("kernelwright.embedding.landmarks.DOUBLE_UP_TO", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asked for single precision: nothing to say
        unasked = nystroem(KERNEL, shifted, RIDGE, 60, random())
    for found in (asked, unasked):
        assert found.precision == "double"
        assert torch.equal(found.coefficients, expected.coefficients)


def test_small_classes_have_rows_to_calibrate_on_together():
    labels = np.repeat(np.arange(30), 10)
    rows = TrainingSet.of(torch.from_numpy(RNG.normal(size=(300, 2))), one_hot(labels, 30))
    rest, held = hold_out(rows, 15, random())
    assert (len(rest), len(held)) == (285, 15)
    alone = TrainingSet.of(torch.from_numpy(RNG.normal(size=(30, 2))), one_hot(np.arange(30), 30))
    rest, held = hold_out(alone, 5, random())
    assert (len(rest), len(held)) == (29, 1)  # a class is never held out whole, but for one


def test_fourier_features_come_close():
    features = fourier_features(KERNEL, 600, 2, seed=0)
    found = explicit(sum_up(features, data()), features, data(), RIDGE)
    assert (outputs(found, features).argmax(1) == TRUTH).mean() > 0.93


def test_landmarks_are_drawn_where_classes_meet():
    """Rows on the border of a disc are missed most: more landmarks there than its share of the rows."""
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(4000, 2)))
    radius = points.norm(dim=1)
    rows = TrainingSet.of(points, one_hot((radius > 1.1).long().numpy(), 2))
    found = nystroem(KERNEL, rows, 1e-3, 120, random())
    assert found.points.unique(dim=0).shape == (120, 2)
    near = [float(((r - 1.1).abs() < 0.15).double().mean()) for r in (found.points.norm(dim=1), radius)]
    assert near[0] > 1.5 * near[1]


@pytest.mark.parametrize("size", [1, 2, 3, 390, 399])
def test_any_number_of_landmarks_will_do(size):
    found = nystroem(KERNEL, data(), 1e-2, size, random())
    assert len(found.points) == min(size, len(found.fitted_rows))
    assert bool(found.coefficients.isfinite().all())


def test_calibration_rows_of_landmarks_were_not_fitted():
    found = nystroem(KERNEL, data(), RIDGE, 60, random())
    assert len(found.left_out.rows) == pytest.approx(N // 20, abs=2)
    rest, held = hold_out(data(), N // 20, random())
    assert len(rest) + len(held) == N
    assert not set(map(tuple, held.points.tolist())) & set(map(tuple, rest.points.tolist()))


@pytest.mark.parametrize(
    ("n", "wished", "expected"), [(500, None, "exact"), (8000, 10, "exact"), (10**6, None, "nystroem")]
)
def test_the_solver_follows_from_the_number_of_rows(n, wished, expected):
    name, size = choose_solver(n, wished)
    assert name == expected
    assert size == n if name == "exact" else 1000 <= size <= 7500


def test_little_memory_means_few_landmarks(monkeypatch):
    monkeypatch.setattr(solvers, "free_memory", lambda: 1e8)
    assert choose_solver(5000, None)[0] == "nystroem"
    assert choose_solver(10**6, None)[1] < 2000


def test_moments_add_up_in_any_order():
    features = RandomFourier(10)
    features.prepare_(torch.from_numpy(X))
    rows = data()
    whole = sum_up(features, rows)
    last, first, second = (sum_up(features, rows.subset(torch.arange(N) % 3 == k)) for k in (2, 0, 1))
    parts = last + (first + second)
    torch.testing.assert_close(parts.gram, whole.gram)
    torch.testing.assert_close(parts.weights(parts.factor(RIDGE)), whole.weights(whole.factor(RIDGE)))
    assert (parts.total, parts.largest) == (whole.total, whole.largest)


# Single precision ----------------------------------------------------------------------------------------------


def test_an_exact_solution_in_single_precision_is_that_in_double_to_six_digits():
    expected, found = (exact(KERNEL, data(), 1e-3, precision=precision) for precision in ("double", "single"))
    assert (expected.precision, found.precision) == ("double", "single")
    for field in ("coefficients", "fitted"):
        assert getattr(found, field).dtype == torch.float64
    np.testing.assert_allclose(outputs(found), outputs(expected), atol=1e-5)
    np.testing.assert_allclose(found.left_out.outputs, expected.left_out.outputs, atol=1e-4)
    assert found.squared_norm == pytest.approx(expected.squared_norm, rel=1e-5)
    assert found.support.level == pytest.approx(expected.support.level, rel=1e-5)


@pytest.mark.parametrize(
    ("ridge", "reason"), [(1e-6, "relative residual of"), (1e-12, "not positive definite")], ids=["small", "tiny"]
)
def test_a_small_ridge_falls_back_to_double_and_says_so(ridge, reason):
    smooth = Gaussian(2.0)
    with pytest.warns(PrecisionWarning, match=f"{reason}.*double precision instead"):
        found = exact(smooth, data(), ridge, precision="single")
    assert found.precision == "double"
    assert torch.equal(found.coefficients, exact(smooth, data(), ridge).coefficients)


def test_a_kernel_whose_values_are_wrong_in_single_precision_is_noticed():
    """The system of such values has a fine solution, of another problem."""

    class Rounded(Gaussian):
        def forward(self, X, Z=None):
            K = super().forward(X, Z)
            return K if X.dtype == torch.float64 else (K * 1e3).round() / 1e3

    with pytest.warns(PrecisionWarning, match="leaves a residual of"):
        assert exact(Rounded(0.7), data(), 0.01, precision="single").precision == "double"


def test_landmarks_in_single_precision_are_close_to_those_in_double():
    expected, found = (nystroem(KERNEL, data(), 1e-2, 60, random(), precision=p) for p in ("double", "single"))
    assert (expected.precision, found.precision) == ("double", "single")
    assert np.abs(outputs(found) - outputs(expected)).mean() < 0.01  # conjugate gradients stop earlier


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # double does not get there either
def test_landmarks_fall_back_to_double_and_say_so(monkeypatch):
    monkeypatch.setattr("kernelwright.embedding.landmarks.MOST_STEPS", 1)
    with pytest.warns(PrecisionWarning, match=r"Conjugate gradients in single precision left .* double"):
        found = nystroem(KERNEL, data(), RIDGE, 60, random(), precision="single")
    expected = nystroem(KERNEL, data(), RIDGE, 60, random(), precision="double")
    assert found.precision == "double"
    assert torch.equal(found.coefficients, expected.coefficients)


def test_a_repair_is_kept_with_the_solution():
    twice = TrainingSet.of(torch.zeros(4, 1, dtype=torch.float64), one_hot(np.array([0, 1, 0, 1]), 2))
    with pytest.warns(NumericalRepairWarning) as caught:
        found = exact(Gaussian(), twice, 1e-18)
    assert found.jitter > 0
    assert f"{found.jitter:.1e}" in str(caught[0].message)
    assert exact(KERNEL, data(), RIDGE).jitter == 0.0


@pytest.mark.parametrize("solver", ["exact", "nystroem", "fourier", "herding"])
def test_every_solver_refuses_in_advance_what_would_not_fit(solver, monkeypatch):
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e6)
    X = np.random.default_rng(0).normal(size=(500, 2))
    model = EmbeddingClassifier(Gaussian(1.0), solver=solver, n_landmarks=200)
    with pytest.raises(MemoryBudgetError, match=r"needs about .* [GM]iB, and 1 MiB are free. Use"):
        model.fit(X, X[:, 0] > 0)
    assert not hasattr(model, "kernel_")


def test_too_many_features_are_refused_before_they_are_summed():
    data = TrainingSet.of(torch.zeros(4, 2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)[[0, 1, 0, 1]])
    with pytest.raises(MemoryBudgetError, match=r"An embedding of 2000000 features needs about .* Use fewer of them"):
        sum_up(RandomFourier(2_000_000), data)
