import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from kernelwright import EmbeddingClassifier, learning
from kernelwright.reports import DecisionProbabilityDisplay, EntropyDisplay
from kernelwright.reports.maps import Plane


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(60, noise=0.2, random_state=0)
    return EmbeddingClassifier(learn=learning.Auto(max_iter=4)).fit(X, y), X, y


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return EmbeddingClassifier(learn=learning.Auto(max_iter=2)).fit(X, y), X, y


def test_the_map_shows_the_probabilities_of_the_model(moons):
    model, X, y = moons
    display = DecisionProbabilityDisplay.from_estimator(model, X, y, resolution=7, names=("a", "$b$"), title="moons")
    across, up = display.grid
    np.testing.assert_allclose(display.probabilities[2, 5], model.predict_proba([[across[5], up[2]]])[0], atol=1e-12)
    assert across[0] < X[:, 0].min()
    assert up[-1] > X[:, 1].max()
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("a", r"\$b\$", "moons")
    np.testing.assert_allclose(ax.collections[0].get_offsets(), X)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1"]


def test_colours_are_mixed_by_the_probabilities(moons):
    model, X, _ = moons
    display = DecisionProbabilityDisplay.from_estimator(model, X, resolution=5, classes=("left", "right"))
    picture = display.image_.get_array()
    boxes = display.ax_.get_legend().get_patches()
    colours = np.array([box.get_facecolor()[:3] for box in boxes])
    np.testing.assert_allclose(picture, display.probabilities @ colours, atol=1e-12)


def test_entropy_is_drawn_by_both_methods(moons):
    model, X, y = moons
    display = EntropyDisplay.from_estimator(model, X, y, resolution=6)
    across, up = display.grid
    point = [[across[4], up[1]]]
    for method, image in zip(("embedding", "clip"), display.images_, strict=True):
        assert image.get_array()[1, 4] == pytest.approx(model.entropy(point, method=method)[0], abs=1e-12)
        assert image.get_clim() == (0.0, pytest.approx(np.log(2)))
    for ax in display.ax_:
        np.testing.assert_allclose(ax.collections[0].get_offsets(), X)


def test_borders_and_empty_regions_light_up(moons):
    model, X, _ = moons
    display = EntropyDisplay.from_estimator(model, X, methods=("clip",), resolution=40)
    corner = display.images_[0].get_array()[0, 0]  # a quarter of the range beyond all rows
    assert corner > np.median(model.entropy(X, method="clip"))


def test_more_features_are_shown_on_their_principal_components(flowers):
    model, X, _ = flowers
    display = EntropyDisplay.from_estimator(model, X, methods=("clip",), resolution=5)
    scaler = StandardScaler().fit(X)
    pca = PCA(2).fit(scaler.transform(X))
    drawn = display.ax_.collections[0].get_offsets()
    np.testing.assert_allclose(np.abs(drawn), np.abs(pca.transform(scaler.transform(X))), atol=1e-8)
    assert "two principal components (96% of the variance), the others at their mean" in display.ax_.get_title()
    signs = np.sign((drawn * pca.transform(scaler.transform(X))).sum(0))
    across, up = display.grid
    row = scaler.inverse_transform(pca.inverse_transform([signs * [across[3], up[1]]]))
    assert display.entropy["clip"][1, 3] == pytest.approx(model.entropy(row, method="clip")[0], abs=1e-8)


def test_a_plane_of_constant_columns_and_of_equal_rows_has_a_grid():
    X = np.column_stack([np.arange(5.0), np.ones(5), np.arange(5.0)])
    _, _, points = Plane.of(X).grid(X, 3)
    assert np.isfinite(points).all()
    np.testing.assert_array_equal(points[:, 1], 1.0)
    _, _, points = Plane.of(np.ones((4, 2))).grid(np.ones((4, 2)), 3)
    assert np.ptp(points, axis=0).min() > 0


def test_one_feature_is_not_enough(moons):
    with pytest.raises(ValueError, match=r"at least two features. Got 1"):
        DecisionProbabilityDisplay.from_estimator(moons[0], np.zeros((3, 1)))


def test_both_methods_need_two_axes(moons):
    with pytest.raises(ValueError, match=r"2 methods need as many axes. Got 1"):
        EntropyDisplay.from_estimator(moons[0], moons[1], resolution=3, ax=Figure().subplots())
