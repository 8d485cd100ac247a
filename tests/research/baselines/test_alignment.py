import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright.kernels import Gaussian, Linear, Polynomial
from kernelwright.research.baselines import AlignmentKernel
from kernelwright.similarity.alignment import alignment_weights, centred, centred_alignment


@parametrize_with_checks([AlignmentKernel(), AlignmentKernel(method="align")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def ideal(y):
    return torch.from_numpy(2.0 * (y[:, None] == y) - 1.0)


@pytest.mark.parametrize("method", ["alignf", "align"])
@pytest.mark.parametrize("data", [make_moons(60, noise=0.1, random_state=0), load_iris(return_X_y=True)])
def test_weights_are_those_of_the_papers_eleven_matrices(method, data):
    X, y = data
    D = ((X[:, None] - X) ** 2).sum(-1)
    matrices = [torch.from_numpy(np.exp(-D / (2.0 * 4.0**power))) for power in range(-5, 6)]
    learner = AlignmentKernel(method=method).fit(X, y)
    mu = alignment_weights(matrices, ideal(y), method=method).numpy()
    # Widths of 16 and 32 are the same kernel to nine digits, so what is compared is the sum.
    expected = sum(w * K.numpy() for w, K in zip(mu, matrices, strict=True))
    ours = learner.kernel_(X)
    np.testing.assert_allclose(ours / ours[0, 0], expected / expected[0, 0], atol=1e-6)
    assert learner.alignment_ == pytest.approx(float(centred_alignment(torch.from_numpy(ours), ideal(y))), abs=1e-9)


def test_the_scale_is_that_of_the_ideal_kernel():
    X, y = load_iris(return_X_y=True)
    K = centred(torch.from_numpy(AlignmentKernel().fit(X, y).kernel_(X)))
    assert float((K * centred(ideal(y))).sum() / (K * K).sum()) == pytest.approx(1.0, abs=1e-9)


def test_kernels_of_weight_zero_are_left_out():
    X, y = make_moons(80, noise=0.1, random_state=0)
    kernels = [Linear(), Gaussian(0.5), Polynomial(2)]
    learner = AlignmentKernel(kernels).fit(X, y)
    expected = sum(w * kernel(X) for w, kernel in zip(learner.weights_, kernels, strict=True))
    np.testing.assert_allclose(learner.kernel_(X), expected, atol=1e-10)
    assert (learner.weights_ == 0).any()
    assert str(learner.kernel_).count("Scaled") == (learner.weights_ > 0).sum()


def test_a_wide_kernel_is_learned_at_a_scale_that_suits_a_machine():
    # Nearly linear data: the widest Gaussian wins, and of norm one it would hardly vary.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 5))
    y = (X.sum(1) > 2.5).astype(int)
    learner = AlignmentKernel([Gaussian(100.0)]).fit(X[:100], y[:100])
    assert SVC(kernel=learner.kernel_).fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.9


def test_median_widths_are_settled_on_a_copy():
    X, y = make_moons(50, random_state=0)
    kernels = [Gaussian("median"), Linear()]
    learner = clone(AlignmentKernel(kernels)).fit(10.0 * X, y)
    assert kernels[0].median
    assert learner.kernel_(X).shape == (50, 50)


def test_errors_are_sentences():
    X, y = make_moons(20, random_state=0)
    with pytest.raises(ValueError, match="must be a list of at least one kernel on vectors"):
        AlignmentKernel([]).fit(X, y)
    with pytest.raises(ValueError, match="Got 'rbf' instead"):
        AlignmentKernel(["rbf"]).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        AlignmentKernel().fit(X, np.ones(20))
