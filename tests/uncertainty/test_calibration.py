"""Maps from raw outputs to probabilities: naive formulas, optimality of the fit, and extreme outputs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

from kernelwright import EmbeddingClassifier
from kernelwright.learning import Auto
from kernelwright.uncertainty import calibration
from kernelwright.uncertainty.calibration import (
    ClipMap,
    PowerMap,
    SoftmaxMap,
    calibrated_log_loss,
    drawn_to_prior,
    fit_map,
    fit_shifted_power,
    trust_in,
)
from kernelwright.uncertainty.scores import expected_calibration_error
from tests import reference as naive

N, M = 300, 3
FITTED = ["power", "softmax"]
each_fitted = pytest.mark.parametrize("name", FITTED)
each_map = pytest.mark.parametrize(
    "probability_map", [ClipMap(), SoftmaxMap(6.0), PowerMap(2.0, 0.05)], ids=lambda m: type(m).__name__
)


def tensor(array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, dtype=np.float64))


def sample(seed: int = 0, slope: float = 0.6, offset: float = 0.03) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw labels from known probabilities, and outputs that are linear in them plus noise."""
    rng = np.random.default_rng(seed)
    p = naive.softmax(4.0 * rng.normal(size=(N, M)))
    labels = np.array([rng.choice(M, p=row) for row in p])
    return slope * p + offset + 0.03 * rng.normal(size=(N, M)), labels, np.eye(M)[labels]


def smoothed(targets: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return targets smoothed by a fraction of a row, shared by all classes."""
    n = w.sum()
    return n / (n + 0.3) * targets + 0.3 / ((n + 0.3) * targets.shape[1])


# Formulas ----------------------------------------------------------------------------------------------------


def test_clip_map_equals_a_loop():
    F = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(ClipMap()(tensor(F)), naive.clip_normalise(F), rtol=1e-12)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 30.0])
def test_softmax_map_equals_the_formula(sharpness):
    F = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(SoftmaxMap(sharpness)(tensor(F)), naive.softmax(sharpness * F), rtol=1e-10)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("softness", [1e-3, 0.1, 1.0])
def test_power_map_equals_the_formula(sharpness, softness):
    F = np.random.default_rng(0).uniform(-0.3, 1.2, size=(20, 3))
    expected = naive.power_map(F, sharpness, softness)
    np.testing.assert_allclose(PowerMap(sharpness, softness)(tensor(F)), expected, rtol=1e-8)


@each_map
def test_log_is_the_logarithm(probability_map):
    F = tensor(np.random.default_rng(0).uniform(0.01, 1.2, size=(20, 3)))
    np.testing.assert_allclose(probability_map.log(F), np.log(probability_map(F).numpy()), rtol=1e-10, atol=1e-12)


# Laws of every map -------------------------------------------------------------------------------------------

outputs = st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), min_size=1, max_size=4)


@each_map
@given(F=outputs)
def test_rows_have_sum_one(probability_map, F):
    p = probability_map(tensor(F)).numpy()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(1), 1.0, rtol=1e-10)


@each_map
def test_the_order_of_the_classes_is_kept(probability_map):
    F = np.random.default_rng(0).uniform(0.0, 1.0, size=(100, 4))
    p = probability_map(tensor(F)).numpy()
    np.testing.assert_array_equal(np.argsort(p, axis=1), np.argsort(F, axis=1))


@pytest.mark.parametrize("probability_map", [SoftmaxMap(6.0), PowerMap(2.0, 0.05)], ids=lambda m: type(m).__name__)
def test_the_order_is_kept_among_negative_outputs_too(probability_map):
    F = np.random.default_rng(0).uniform(-1.0, -0.1, size=(100, 4))
    p = probability_map(tensor(F)).numpy()
    np.testing.assert_array_equal(np.argsort(p, axis=1), np.argsort(F, axis=1))


@pytest.mark.parametrize("probability_map", [SoftmaxMap(6.0), PowerMap(2.0, 0.05)], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("size", [1e-300, 1e3, 1e8, 1e150, 1e200])
def test_extreme_outputs_give_finite_logarithms_in_order(probability_map, size):
    F = size * np.array([[1.0, 0.5, -1.0], [-1.0, -0.5, 0.0], [0.0, 0.0, 0.0]])
    logs = probability_map.log(tensor(F)).numpy()
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(1), 1.0, rtol=1e-9)
    assert (np.diff(logs[0]) <= 0).all()
    assert (np.diff(logs[1]) >= 0).all()
    np.testing.assert_allclose(logs[2], np.log(1 / 3))


# The fit -----------------------------------------------------------------------------------------------------


@each_fitted
def test_a_fitted_map_beats_the_clip_on_new_rows(name):
    shrunk = {"slope": 0.5, "offset": 0.5 / M}  # all positive, too cautious
    F, _, Y = sample(0, **shrunk)
    probability_map = fit_map(name, tensor(F), tensor(Y), torch.ones(N, dtype=torch.float64))
    F_new, labels, Y_new = sample(1, **shrunk)
    fitted, clipped = probability_map(tensor(F_new)).numpy(), ClipMap()(tensor(F_new)).numpy()
    ones = np.ones(N)
    assert naive.cross_entropy(fitted, Y_new, ones) < naive.cross_entropy(clipped, Y_new, ones) - 0.05
    assert expected_calibration_error(fitted, labels) < expected_calibration_error(clipped, labels)


@pytest.mark.parametrize("w", [np.ones(N), np.random.default_rng(2).uniform(0.2, 3.0, N)], ids=["ones", "weights"])
def test_no_other_sharpness_is_better(w):
    F, _, Y = sample()

    def loss(theta):
        return naive.cross_entropy(naive.softmax(np.exp(theta[0]) * F), smoothed(Y, w), w)

    found = fit_map("softmax", tensor(F), tensor(Y), tensor(w))
    best = minimize(loss, [0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    assert loss([np.log(found.sharpness)]) <= best.fun + 1e-7


WEIGHTINGS = {"ones": np.ones(N), "weights": np.random.default_rng(2).uniform(0.2, 3.0, N)}
weightings = pytest.mark.parametrize("w", list(WEIGHTINGS.values()), ids=list(WEIGHTINGS))
PI = np.array([0.5, 0.3, 0.2])
# What most tables ask for, and how many rows that counts for, of maps that keep the class frequencies or do not.
anchors = pytest.mark.parametrize(
    ("pi", "usual", "pull"), [(None, 1.1, 1.0), (PI, 0.5, 4.0)], ids=["free", "keeps frequencies"]
)


def tensor_or_none(pi):
    return None if pi is None else tensor(pi)


def penalised(F, Y, w, theta, pi, usual, pull):
    fit = naive.cross_entropy(naive.power_map(F, *np.exp(theta), pi), smoothed(Y, w), w)
    return fit + 0.5 * (pull * (theta[0] - usual) ** 2 + (theta[1] + 2.4) ** 2) / w.sum()


@weightings
@anchors
def test_no_other_power_is_better(w, pi, usual, pull):
    F, _, Y = sample()

    def loss(theta):
        return penalised(F, Y, w, theta, pi, usual, pull)

    found = fit_map("power", tensor(F), tensor(Y), tensor(w), tensor_or_none(pi))
    starts = ([0.0, -3.0], [2.0, -1.0], [1.0, -5.0])
    best = min(minimize(loss, start, method="Nelder-Mead", bounds=[(-3, 4), (-9, 1)]).fun for start in starts)
    assert loss(np.log([found.sharpness, found.softness])) <= best + 1e-5


@anchors
def test_no_other_shift_is_better(pi, usual, pull):
    F, _, Y = sample()
    F[:, 0] += 0.2  # the outputs of one class are too large
    F -= F.mean(1, keepdims=True) - 1 / 3
    w = np.random.default_rng(2).uniform(0.2, 3.0, N)

    def loss(theta):
        shift = np.append(theta[2:], -np.sum(theta[2:]))
        return penalised(F + shift, Y, w, theta[:2], pi, usual, pull) + 0.5 * 200.0 * (shift**2).sum() / w.sum()

    found, shift = fit_shifted_power(tensor(F), tensor(Y), tensor(w), tensor_or_none(pi))
    theta = np.array([np.log(found.sharpness), np.log(found.softness), *shift[:2]])
    best = minimize(loss, theta + 0.05, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12})
    assert loss(theta) <= best.fun + 1e-6
    assert float(shift.sum()) == pytest.approx(0.0, abs=1e-12)
    assert -0.25 < float(shift[0]) < (-0.05 if pi is None else -0.01)


@weightings
@anchors
def test_the_calibrated_loss_and_its_gradient(w, pi, usual, pull):
    F, _, Y = sample()

    def loss(outputs):
        return calibrated_log_loss(tensor(outputs), tensor(Y), tensor(w), tensor_or_none(pi))

    value, gradient = loss(F)
    best = minimize(
        lambda theta: penalised(F, Y, w, theta, pi, usual, pull),
        [1.0, -1.0],
        method="Nelder-Mead",
        bounds=[(-1.0, 2.0), (-1.6, 1.0)],
    )
    assert value == pytest.approx(best.fun, abs=1e-6)
    for i, k in [(0, 0), (7, 1), (100, 2), (299, 0)]:
        step = np.zeros_like(F)
        step[i, k] = 1e-4
        slope = (loss(F + step)[0] - loss(F - step)[0]) / 2e-4
        assert float(gradient[i, k]) == pytest.approx(slope, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("sharpness", [0.5, 1.6, 20.0])
def test_outputs_that_say_nothing_are_mapped_to_the_class_frequencies(sharpness):
    found = PowerMap(sharpness, 0.1, tuple(PI))(tensor(np.tile(PI, (3, 1))))
    np.testing.assert_allclose(found, np.tile(PI, (3, 1)), rtol=1e-12)


def test_trust_grows_with_rows_and_with_evidence():
    def trust(n, p):
        targets = torch.eye(2, dtype=torch.float64)[torch.arange(n) % 2]
        log_p = torch.where(targets > 0, math.log(p), math.log(1 - p))
        return trust_in(log_p, targets, torch.ones(n, dtype=torch.float64), n)

    assert trust(15, 0.5) < trust(15, 0.999) < 0.5 < trust(30, 0.8) < trust(40, 0.9) < trust(100, 0.7) <= 1.0
    assert trust(100, 0.5) > 0.99
    assert trust(40, 0.99) > 0.99


@each_fitted
def test_the_gradient_of_the_fit_equals_finite_differences(name, monkeypatch):
    seen = []

    def spy(function, start, **options):
        seen.append((function, np.asarray(start)))
        return minimize(function, start, **options)

    monkeypatch.setattr(calibration, "minimize", spy)
    F, _, Y = sample()
    fit_map(name, tensor(F), tensor(Y), tensor(np.linspace(0.5, 2.0, N)))
    function, start = seen[0]
    for shift in (-1.0, 0.0, 0.7):
        theta = start + shift
        slope = approx_fprime(theta, lambda t: function(t)[0], 1e-7)
        np.testing.assert_allclose(function(theta)[1], slope, rtol=1e-4, atol=1e-6)


@each_fitted
def test_whole_weights_are_repetitions(name):
    F, _, Y = sample()
    whole = np.random.default_rng(3).integers(1, 4, N)
    weighted = fit_map(name, tensor(F), tensor(Y), tensor(whole))
    repeated = fit_map(
        name, tensor(np.repeat(F, whole, 0)), tensor(np.repeat(Y, whole, 0)), tensor(np.ones(whole.sum()))
    )
    np.testing.assert_allclose(weighted(tensor(F)), repeated(tensor(F)), atol=1e-5)


@each_fitted
def test_separable_rows_do_not_ask_for_infinite_confidence(name):
    labels = np.arange(60) % 3
    F = 0.8 * np.eye(3)[labels] + 0.1
    logs = fit_map(name, tensor(F), tensor(np.eye(3)[labels]), torch.ones(60, dtype=torch.float64)).log(tensor(F))
    p = np.exp(logs.numpy())
    assert np.isfinite(logs.numpy()).all()
    own = p[np.arange(60), labels]
    np.testing.assert_allclose(own, 1 - 2 / 3 / 61, atol=2e-2)  # about the smoothed target


@each_fitted
def test_outputs_without_information_give_equal_probabilities(name):
    F, Y = np.full((30, 3), 1 / 3), np.eye(3)[np.arange(30) % 3]
    p = fit_map(name, tensor(F), tensor(Y), torch.ones(30, dtype=torch.float64))(tensor(F))
    np.testing.assert_allclose(p, 1 / 3, rtol=1e-10)


def test_clip_has_nothing_to_fit():
    F, _, Y = sample()
    assert fit_map("clip", tensor(F), tensor(Y), torch.ones(N, dtype=torch.float64)) == ClipMap()


def test_an_unknown_map_is_refused():
    F, _, Y = sample()
    with pytest.raises((ValueError, KeyError), match="isotonic"):
        fit_map("isotonic", tensor(F), tensor(Y), torch.ones(N, dtype=torch.float64))


# Calibrators of scikit-learn ------------------------------------------------------------------------------------


def noisy_outputs(n=400, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    outputs = 0.4 * np.eye(3)[labels] + rng.normal(0.2, 0.2, (n, 3))
    return torch.from_numpy(outputs), torch.from_numpy(np.eye(3)[labels]), labels


def test_a_classifier_calibrates_all_outputs_at_once():
    F, Y, labels = noisy_outputs()
    weights = torch.from_numpy(np.random.default_rng(1).uniform(0.5, 2.0, len(labels)))
    fitted = fit_map(LogisticRegression(C=3.0), F, Y, weights)
    expected = LogisticRegression(C=3.0).fit(F, labels, sample_weight=weights).predict_proba(F)
    expected = np.maximum(expected, 1 / (3 * (float(weights.sum()) + 1)))
    np.testing.assert_allclose(fitted(F), expected / expected.sum(1, keepdims=True), rtol=1e-9)


def test_a_regressor_calibrates_each_class():
    F, Y, _ = noisy_outputs()
    fitted = fit_map(IsotonicRegression(out_of_bounds="clip"), F, Y, torch.ones(len(F), dtype=torch.float64))
    columns = [IsotonicRegression(out_of_bounds="clip").fit(F[:, k], Y[:, k]).predict(F[:, k]) for k in range(3)]
    expected = np.clip(np.column_stack(columns), 1 / (3 * 401), 1)
    np.testing.assert_allclose(fitted(F), expected / expected.sum(1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize(
    "calibrator", [LogisticRegression(), IsotonicRegression(out_of_bounds="clip"), LinearRegression()]
)
def test_any_calibrator_of_scikit_learn_makes_probabilities(calibrator):
    X, y = load_wine(return_X_y=True)
    model = EmbeddingClassifier(learn=Auto(max_iter=3), probability=calibrator).fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    np.testing.assert_allclose(p.sum(1), 1.0)
    assert log_loss(y[1::2], p) < 0.4
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(1))
    assert clone(model).probability is not calibrator


@pytest.mark.parametrize("method", ["isotonic", "sigmoid", "temperature"])
def test_calibrators_around_the_classifier_work_too(method):
    if not CalibratedClassifierCV._parameter_constraints["method"][0].options >= {method}:
        pytest.skip(f"this scikit-learn has no {method!r}")
    X, y = load_wine(return_X_y=True)
    model = CalibratedClassifierCV(EmbeddingClassifier(learn=Auto(max_iter=3)), method=method, cv=3).fit(X[::2], y[::2])
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < 0.4


def test_something_that_is_no_calibrator_is_refused():
    with pytest.raises(ValueError, match="The 'probability' parameter of EmbeddingClassifier"):
        EmbeddingClassifier(probability="isotonic").fit(*load_wine(return_X_y=True))


@pytest.mark.parametrize("support", [0.0, 1e-9, 0.3, 1.0, 5.0])
def test_probabilities_are_drawn_to_the_prior_in_proportion(support):
    log_p, prior = tensor([[0.0, -800.0, -900.0]]), tensor([0.2, 0.3, 0.5])
    drawn = drawn_to_prior(log_p, torch.tensor([support], dtype=torch.float64), prior).exp()
    trust = min(support, 1.0)
    np.testing.assert_allclose(drawn[0], trust * np.array([1.0, 0, 0]) + (1 - trust) * prior.numpy(), atol=1e-12)
