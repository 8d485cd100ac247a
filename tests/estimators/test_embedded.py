"""Results computed from the embedding of a fitted model, and leave-one-out outputs."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from kernelwright import EmbeddingClassifier
from kernelwright.features import Polynomial, RandomFourier
from kernelwright.kernels import Gaussian
from kernelwright.solvers import Exact, Landmarks

X, Y = make_blobs(60, centers=[[0.0, 0.0], [1.5, 0.0], [0.5, 1.5]], cluster_std=0.8, random_state=0)
NEW = np.random.default_rng(1).uniform(-1.0, 2.0, (23, 2))
GIVEN = {"learn": None, "ridge": 0.02, "random_state": 0}


def fitted(groups=None, **options):
    return EmbeddingClassifier(**(GIVEN | options)).fit(X, Y, groups=groups)


# attributes ------------------------------------------------------------------------------------------------------

PARTS = {
    "kernel_": "kernel",
    "features_": "features",
    "scaler_": "scaler",
    "ridge_": "ridge",
    "prior_": "prior",
    "solver_": "solver",
    "points_": "points",
    "coefficients_": "coefficients",
    "jitter_": "jitter",
    "precision_": "precision",
    "n_landmarks_": "size",
    "n_support_rows_": "n_support_rows",
}


@pytest.mark.parametrize("name", PARTS)
def test_attributes_are_parts_of_the_embedding_and_cannot_be_set(name):
    unfitted, model = EmbeddingClassifier(Gaussian()), fitted(kernel=Gaussian(), scale="standard")
    assert not hasattr(unfitted, name)
    found, part = getattr(model, name), getattr(model.embedding_, PARTS[name])
    if isinstance(part, torch.Tensor):
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, part)
    else:
        assert found is part or found == part
    with pytest.raises(AttributeError):
        setattr(model, name, found)


# blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [None, 1, 7, 100])
def test_blocks_are_kernel_values_outputs_and_support(n_rows):
    model = fitted(kernel=Gaussian(0.8))
    blocks = list(model.output_blocks(NEW, n_rows))
    sizes = [len(values) for values, _, _ in blocks]
    assert sizes == ([23] if n_rows in (None, 100) else [n_rows] * (23 // n_rows) + [23 % n_rows] * (23 % n_rows > 0))
    values, outputs, support = (torch.cat(parts).numpy() for parts in zip(*blocks, strict=True))
    np.testing.assert_allclose(values, Gaussian(0.8)(NEW, model.points_), atol=1e-12)
    np.testing.assert_allclose(outputs, model.raw_outputs(NEW), atol=1e-12)
    np.testing.assert_allclose(support, model.support(NEW), atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [{"features": Polynomial(2)}, {"kernel": Gaussian(0.8), "solver": Landmarks(20)}],
    ids=["features", "landmarks"],
)
def test_blocks_of_features_and_landmarks(options):
    model = fitted(**options)
    values, outputs, support = next(model.output_blocks(NEW))
    by_hand = Polynomial(2).fit(X)(NEW) if "features" in options else Gaussian(0.8)(NEW, model.points_)
    np.testing.assert_allclose(values, by_hand, atol=1e-12)
    np.testing.assert_allclose(outputs, by_hand @ model.coefficients_, atol=1e-9)
    np.testing.assert_allclose(support, model.support(NEW), atol=1e-12)


def test_blocks_of_single_precision_are_given_as_double():
    model = fitted(kernel=Gaussian(0.8), solver=Exact("single"))
    assert model.precision_ == "single"
    values, outputs, support = next(model.output_blocks(NEW))
    assert {values.dtype, outputs.dtype, support.dtype} == {torch.float64}
    np.testing.assert_allclose(values, Gaussian(0.8)(NEW, model.points_), atol=1e-6)


def test_new_rows_are_checked():
    with pytest.raises(ValueError, match="X has 1 features"):
        next(fitted(kernel=Gaussian()).output_blocks(NEW[:, :1]))


# rows left out ---------------------------------------------------------------------------------------------------


def by_refit(model, gone, new, groups=None):
    """Return raw outputs at new rows by the embedding of the remaining rows.

    Diagonal and prior are those of all rows. The link moves the prior afterwards, so it is added as it is now.
    """
    n = 60 if groups is None else len(np.unique(groups))  # the sum of all weights, which are equal
    frequencies = (np.bincount(Y) * n / 60 + 1 / 3) / (n + 1)
    solved_with = frequencies if model.prior_.any() else np.zeros(3)
    K = Gaussian(0.8)(X[~gone])
    V = np.linalg.solve(K + model.ridge_ * 60 * np.eye(len(K)), np.eye(3)[Y[~gone]] - solved_with)
    return model.prior_ + Gaussian(0.8)(new, X[~gone]) @ V


@pytest.mark.parametrize("groups", [None, np.arange(60) // 4], ids=["rows", "groups"])
@pytest.mark.parametrize("learn", [None, "auto"])
def test_each_row_is_left_out_as_by_a_refit(groups, learn):
    model = fitted(groups, kernel=Gaussian(0.8).requires_grad_(False), learn=learn)
    rows, place = model.without_each_row(), model.embedding_.rows.place
    values, outputs, _ = next(model.output_blocks(NEW))
    change = rows.change_at(values)
    assert change.shape == (23, 60, 3)
    for row in (0, 17, 42):
        gone = np.arange(60) == row if groups is None else groups == groups[row]
        at = place[row]
        np.testing.assert_allclose(rows.outputs[at], by_refit(model, gone, X[[row]], groups)[0], atol=1e-9)
        np.testing.assert_allclose(outputs - change[:, at], by_refit(model, gone, NEW, groups), atol=1e-9)
        assert rows.strata[at] == Y[row]
    np.testing.assert_array_equal(rows.counts, np.ones(60))


def test_support_of_a_row_left_out_is_that_of_its_nearest_neighbour():
    model = fitted(kernel=Gaussian(0.8))
    rows, place = model.without_each_row(), model.embedding_.rows.place
    K = Gaussian(0.8)(X) - 2.0 * np.eye(60)
    unit = Gaussian(0.8)(NEW, X).max(1) / model.support(NEW)
    np.testing.assert_allclose(rows.support[place], K.max(1) / unit[0], rtol=1e-9)
    assert 0 < int((rows.support < 1.0 + 1e-9).sum()) < 3  # one row in a hundred, or the one that makes the unit


def test_features_leave_out_rows_too():
    model = fitted(features=RandomFourier(20, lengthscale=1.0))
    rows, place = model.without_each_row(), model.embedding_.rows.place
    Z, new = (model.features_(torch.from_numpy(x)).detach().numpy() for x in (X, NEW))
    values, outputs, _ = next(model.output_blocks(NEW))
    for row in (3, 30):
        kept = np.arange(60) != row
        W = np.linalg.solve(Z[kept].T @ Z[kept] + 0.02 * 60 * np.eye(Z.shape[1]), Z[kept].T @ np.eye(3)[Y[kept]])
        at = place[row]
        np.testing.assert_allclose(rows.outputs[at], Z[row] @ W, atol=1e-9)
        np.testing.assert_allclose(outputs - rows.change_at(values)[:, at], new @ W, atol=1e-9)


def test_rows_left_out_of_a_calibrated_model_have_its_prior():
    """The link moves the prior of the outputs: rows left out move with it."""
    model = fitted(kernel=Gaussian(0.8), learn="auto")
    rows = model.without_each_row()
    p = model.link_(rows.outputs, rows.support).argmax(1)
    wrong = (p != rows.strata).double().mean()
    closed_form = next(iter(model.risk_bound("leave-one-out", loss="error").parts.values()))
    assert float(wrong) == pytest.approx(closed_form)
