import numpy as np
import pytest
from matplotlib.colors import to_rgb

from kernelwright import EmbeddingClassifier, HyperKernelRidge, learning
from kernelwright.kernels.relevance import FeatureRelevance, Relevance
from kernelwright.reports import KernelMatrixDisplay, PairScatterDisplay, RelevanceDisplay, SpectrumDisplay
from kernelwright.reports.drawing import ACCENT, WARM


@pytest.fixture(scope="module")
def learned():
    X = np.random.default_rng(0).normal(size=(25, 2))
    target = -np.linalg.norm(X[:, None] - X, axis=-1)
    target[3, 7] = target[7, 3] = np.nan
    return HyperKernelRidge(random_state=0).fit(X, target), X, target


def test_bars_are_the_shares():
    found = Relevance([FeatureRelevance("$a$", 0.1, 0.7, "lower"), FeatureRelevance("<b>", 3.0, 0.3)])
    display = RelevanceDisplay(found).plot()
    assert [bar.get_width() for bar in display.bars_] == [0.7, 0.3]
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [r"\$a\$", "<b>"]
    assert [text.get_text() for text in display.ax_.texts] == ["70.0%", "30.0%"]
    assert [bar.get_facecolor()[:3] for bar in display.bars_] == [to_rgb(WARM), to_rgb(ACCENT)]
    assert display.ax_.yaxis_inverted()  # the first one is on top


def test_of_many_features_the_last_ones_are_one_bar():
    shares = np.linspace(2.0, 1.0, 30) / 45.0
    found = Relevance([FeatureRelevance(f"f{number}", 1.0, share) for number, share in enumerate(shares)])
    display = RelevanceDisplay(found).plot(most=10)
    assert len(display.bars_) == 10
    assert sum(bar.get_width() for bar in display.bars_) == pytest.approx(shares.sum())
    assert display.ax_.get_yticklabels()[-1].get_text() == "21 others"


def test_relevance_of_an_estimator_has_the_names_it_is_given(rng):
    X = rng.normal(size=(40, 3))
    model = EmbeddingClassifier(learn=learning.Auto(max_iter=3)).fit(X, X[:, 1] > 0)
    display = RelevanceDisplay.from_estimator(model, names=["left", "middle", "right"])
    expected = {row.name: row.share for row in model.relevance().rows}
    names = {"left": "x0", "middle": "x1", "right": "x2"}
    for label, bar in zip(display.ax_.get_yticklabels(), display.bars_, strict=True):
        assert bar.get_width() == expected[names[label.get_text()]]


def test_the_spectrum_has_numpy_s_eigenvalues(rng):
    A = rng.normal(size=(12, 12))
    K = A + A.T
    display = SpectrumDisplay.from_matrix(K)
    expected = np.linalg.eigvalsh(K)
    positive, negative = (points.get_offsets()[:, 1] for points in display.points_)
    np.testing.assert_allclose(positive, expected[expected >= 0][::-1], atol=1e-10)
    np.testing.assert_allclose(negative, expected[expected < 0][::-1], atol=1e-10)
    share = -expected[expected < 0].sum() / np.abs(expected).sum()
    shown = display.ax_.get_legend().get_texts()[1].get_text()
    assert shown == f"negative: {(expected < 0).sum()} ({share:.1%})"
    low, high = display.ax_.get_ylim()
    assert low < expected.min()
    assert high > expected.max()


def test_both_matrices_have_the_same_colours(learned):
    model, X, target = learned
    order = np.argsort(X[:, 0])
    display = KernelMatrixDisplay.from_estimator(model, X, target, order=order)
    given, made = (image.get_array() for image in display.images_)
    np.testing.assert_array_equal(np.ma.filled(given, np.nan), target[np.ix_(order, order)])
    np.testing.assert_allclose(made, model.predict(X)[np.ix_(order, order)])
    assert display.images_[0].get_clim() == display.images_[1].get_clim()


def test_pairs_are_drawn_once_and_gaps_not_at_all(learned):
    model, X, target = learned
    display = PairScatterDisplay.from_estimator(model, X, target)
    offsets = display.points_.get_offsets()
    assert len(offsets) == 25 * 26 // 2 - 1
    gap = offsets[:, 1] - offsets[:, 0]
    assert display.ax_.get_title() == f"root mean squared error {np.sqrt(np.mean(gap**2)):.3g}"
    known = ~np.isnan(target) & np.triu(np.ones_like(target, dtype=bool))
    np.testing.assert_allclose(offsets[:, 0], target[known])
    np.testing.assert_allclose(offsets[:, 1], model.predict(X)[known], atol=1e-10)
