"""Bounds on the risk of a regressor: against quantities computed by hand, and against new rows."""

import numpy as np
import pytest
import torch

import kernelwright as kw
from kernelwright import EmbeddingRegressor, learning
from kernelwright.distributions import LocationScale
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian, Linear
from kernelwright.learning import Given
from kernelwright.solvers import Landmarks


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, 20.0 + np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(3, n)


def given(**how):
    settings = {"kernel": Gaussian(0.7), "learn": None, "ridge": 0.01, "distribution": "location-scale"}
    return EmbeddingRegressor(**(settings | {"random_state": 0} | how))


def clipped(model, X, y, limit, power):
    return (np.minimum(np.abs(model.predict(X) - y), limit) ** power).mean()


@pytest.mark.parametrize(("loss", "power"), [("absolute", 1), ("squared", 2)])
def test_held_out_rows_that_are_passed_or_set_aside(loss, power):
    X, y = draw(300)
    model = given(learn=Given(holdout_share=0.4)).fit(X, y)
    inside = model.embedding_.rows.given
    here, there = model.risk_bound(loss=loss), model.risk_bound("holdout", X[~inside], y[~inside], loss=loss)
    assert here.parts == pytest.approx(there.parts)
    assert here.parts["held-out loss"] == pytest.approx(
        clipped(model, X[~inside], y[~inside], 3 * y[inside].std(), power)
    )
    assert f"{3 * y[inside].std():.4g}" in here.conditions  # the limit is that of fitted rows
    assert here.total >= clipped(model, *draw(5000, 1), 3 * y[inside].std(), power)
    assert not here.vacuous


def test_held_out_rows_change_nothing_in_the_fit():
    """Nor the scale, the range and the thresholds of the target."""
    X, y = draw(200)
    model = EmbeddingRegressor(Gaussian(0.7), learn=Given(holdout_share=0.4), ridge=0.01, random_state=0)
    here = model.fit(X, y).quantile(X, [0.05, 0.5, 0.95])
    y = np.where(model.embedding_.rows.given, y, -1000.0 * y)
    np.testing.assert_array_equal(model.fit(X, y).quantile(X, [0.05, 0.5, 0.95]), here)


def test_the_groups_of_held_out_rows_count_once():
    X, y = draw(200)
    groups = np.arange(200) // 5
    model = given(learn=Given(holdout_share=0.5)).fit(X, y, groups=groups)
    found, apart = model.risk_bound(), ~model.embedding_.rows.given
    own = np.minimum(np.abs(model.predict(X) - y), found.largest)[apart]
    means = [own[groups[apart] == group].mean() for group in np.unique(groups[apart])]
    assert found.parts["held-out loss"] == pytest.approx(np.mean(means))
    assert len(means) == 20


@pytest.mark.parametrize(("loss", "power"), [("absolute", 1), ("squared", 2)])
def test_left_out_rows_estimate_the_loss_at_new_rows(loss, power):
    model = EmbeddingRegressor(random_state=0).fit(*draw(300))
    found = model.risk_bound("leave-one-out", loss=loss, limit=2.0)
    truth = clipped(model, *draw(10_000, 1), 2.0, power)
    assert found.total == pytest.approx(truth, rel=0.25)
    assert truth < found.upper
    assert (found.guaranteed, found.largest) == (False, 2.0**power)


def test_left_out_losses_are_those_of_models_without_each_row():
    X, y = draw(30)
    model = given(distribution=LocationScale(transform="identity")).fit(X, y)
    errors, z = [], (y - y.mean()) / y.std()
    for row in range(30):
        others = np.arange(30) != row
        K = model.kernel_(X[others]) + 0.01 * 30 * np.eye(29)
        errors.append(z[row] - (model.kernel_(X[[row]], X[others]) @ np.linalg.solve(K, z[others]))[0])
    rows, link, place = model.left_out_[0], model.links_[0], model.embedding_.rows.place
    np.testing.assert_allclose(rows.location[place], z - errors, atol=1e-9)
    means = link(rows.location, rows.log_scale, None, rows.support).mean()[place]
    assert model.risk_bound("leave-one-out", limit=50.0).total == pytest.approx(np.abs(means - y).mean())


@pytest.mark.parametrize("features", [None, RandomFourier(40, lengthscale=0.7)], ids=["kernel", "features"])
def test_bounds_by_the_norm_have_the_norm_of_the_location(features):
    X, y = draw(200)
    how = {"kernel": None, "features": features} if features else {}
    model = given(distribution=LocationScale(transform="identity"), **how).fit(X, y)
    z = (y - y.mean()) / y.std()
    if features:
        Z = model.features_(torch.from_numpy(X)).detach().numpy()
        w = np.linalg.solve(Z.T @ Z + 0.01 * 200 * np.eye(40), Z.T @ z)
        norm, fitted = np.sqrt(model.features_.bound) * np.linalg.norm(w), Z @ w
    else:
        K = np.asarray(model.kernel_(X))
        v = np.linalg.solve(K + 0.01 * 200 * np.eye(200), z)
        norm, fitted = np.sqrt(v @ K @ v), K @ v
    found = model.risk_bound("rademacher", loss="squared", limit=3.0)
    complexity = found.parts["4 x limit x complexity"] / 12.0
    assert norm * y.std() <= complexity * (1 + 1e-9) <= 1.1 * norm * y.std() * (1 + 1e-8)  # rounded up
    loss = np.minimum(np.abs(y.mean() + y.std() * fitted - y), 3.0) ** 2
    assert found.parts["training loss"] == pytest.approx(loss.mean())
    assert found.guaranteed


@pytest.mark.parametrize("ridge", [1e-6, 0.01])
def test_bounds_by_the_norm_hold_at_new_rows(ridge):
    X, y = draw(400)
    model = given(ridge=ridge, distribution=LocationScale(transform="identity")).fit(X, y)
    new, truth = draw(5000, 1)
    location = model.embedding_.outputs(new)[0][:, 0].numpy() * y.std() + y.mean()
    for method in ("rademacher", "rademacher-fixed-kernel"):
        found = model.risk_bound(method, loss="squared", limit=8.0)
        assert found.total >= (np.minimum(np.abs(location - truth), 8.0) ** 2).mean()
    assert not found.vacuous


def test_a_kernel_of_other_rows_is_fixed_and_a_learned_one_is_not():
    X, y = draw(300)
    apart = EmbeddingRegressor(learn=learning.Auto(max_iter=2, kernel_share=0.5), random_state=0).fit(X, y)
    assert apart.risk_bound("rademacher-fixed-kernel", loss="squared").guaranteed
    learned = EmbeddingRegressor(learn=learning.Auto(max_iter=2), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="does not hold here"):
        learned.risk_bound("rademacher-fixed-kernel", loss="squared")
    assert learned.risk_bound("rademacher", loss="squared").vacuous


def test_what_is_wrong_with_the_rows_is_said():
    X, y = draw(100)
    how = {"method": "rademacher", "loss": "squared"}
    for model, fit, said in (
        (given(), {"sample_weight": np.arange(1.0, 101.0)}, "rows had weights"),
        (given(), {"groups": np.arange(100) // 2}, "in groups"),
        (given(kernel=Linear()), {}, "no known bound"),
    ):
        found = model.fit(X, y, **fit).risk_bound(**how)
        assert not found.guaranteed
        assert said in found.conditions


def test_what_cannot_be_bounded_is_refused_with_advice():
    X, y = draw(100)
    model = given().fit(X, y)
    for how, message in (
        ({"method": "holdout"}, "holdout_share=0.3"),
        ({"method": "holdout", "X": X}, "both X and y"),
        ({"method": "bayes"}, "must be one of"),
        ({"method": "rademacher"}, "squared loss only"),
        ({"method": "leave-one-out", "target": 1}, "index below 1"),
    ):
        with pytest.raises(ValueError, match=message):
            model.risk_bound(**how)
    with pytest.raises(ValueError, match="needs an exact solution"):
        given(solver=Landmarks(10)).fit(X, y).risk_bound("rademacher", loss="squared")
    logged = given(distribution=LocationScale(transform="log")).fit(X, np.exp(y - 20))
    with pytest.raises(ValueError, match="learned by its log"):
        logged.risk_bound("rademacher", loss="squared")


def test_each_of_several_targets_has_its_bound():
    X, y = draw(100)
    model = given().fit(X, np.column_stack([y, 100.0 * y]))
    small, large = (model.risk_bound("leave-one-out", target=j).total for j in (0, 1))
    assert large == pytest.approx(100.0 * small, rel=1e-6)


def test_a_loaded_model_has_the_same_bounds(tmp_path):
    X, y = draw(100)
    model = given(learn=Given(holdout_share=0.3, kernel_share=0.5)).fit(X, y)
    kw.save(model, tmp_path / "model.kw")
    loaded = kw.load(tmp_path / "model.kw")
    for method in ("holdout", "leave-one-out", "rademacher-fixed-kernel"):
        assert loaded.risk_bound(method, loss="squared") == model.risk_bound(method, loss="squared")
