import itertools

import numpy as np
import pytest
import torch

from kernelwright.kernels import Constant, Gaussian, KroneckerDelta, Linear
from kernelwright.similarity import alignment as module
from kernelwright.similarity.alignment import (
    LazyKernelMatrix,
    alignment,
    alignment_weights,
    centred,
    centred_alignment,
    centred_gram,
)


def naive_centred(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


def best_weights_by_enumeration(matrices, target):
    """Find the alignf weights: the best least-squares fit over all subsets of kernels with non-negative weights."""
    columns = np.stack([naive_centred(K).ravel() for K in matrices], 1)
    goal, best, least = naive_centred(target).ravel(), None, np.inf
    for size in range(1, len(matrices) + 1):
        for chosen in map(list, itertools.combinations(range(len(matrices)), size)):
            v = np.linalg.lstsq(columns[:, chosen], goal, rcond=None)[0]
            error = np.linalg.norm(columns[:, chosen] @ v - goal)
            if (v >= 0).all() and error < least - 1e-12:
                best, least = np.zeros(len(matrices)), error
                best[chosen] = v
    return best / np.linalg.norm(best)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.sign(X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=30) - 0.5)
    kernels = [Gaussian(0.3), Gaussian(1.0), Gaussian(3.0), Linear(), Gaussian(2.0) * Linear()]
    return torch.from_numpy(X), [torch.from_numpy(kernel(X)) for kernel in kernels], torch.from_numpy(np.outer(y, y))


def test_centred_is_the_product_with_the_centring_matrix():
    K = np.random.default_rng(0).normal(size=(7, 7))  # not symmetric
    np.testing.assert_allclose(centred(torch.from_numpy(K)).numpy(), naive_centred(K), atol=1e-14)


def test_centred_is_the_kernel_matrix_of_centred_features():
    X = np.random.default_rng(0).normal(3.0, 1.0, size=(9, 4))
    Z = X - X.mean(0)
    np.testing.assert_allclose(centred(torch.from_numpy(X @ X.T)).numpy(), Z @ Z.T, atol=1e-12)


def test_alignments_equal_their_formulas(problem):
    _, (K, _, L, *_), _ = problem
    a, b = K.numpy(), L.numpy()
    assert float(alignment(K, L)) == pytest.approx(np.trace(a @ b) / np.sqrt(np.trace(a @ a) * np.trace(b @ b)))
    a, b = naive_centred(a), naive_centred(b)
    assert float(centred_alignment(K, L)) == pytest.approx(np.trace(a @ b) / np.sqrt(np.trace(a @ a) * np.trace(b @ b)))


def test_alignment_can_be_differentiated():
    K = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    L = torch.eye(5, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda K: centred_alignment(K, L), (K,))


def test_gram_by_blocks_equals_products_of_whole_centred_matrices(problem, monkeypatch):
    X, matrices, _ = problem
    skew = torch.from_numpy(np.random.default_rng(1).normal(size=(30, 30)))
    naive = np.stack([naive_centred(K.numpy()).ravel() for K in [*matrices, skew]])
    monkeypatch.setattr(module, "CENTRED_ENTRIES", 7 * 30 * 6)  # blocks of seven rows, and a rest
    np.testing.assert_allclose(centred_gram([*matrices, skew]).numpy(), naive @ naive.T, rtol=1e-11, atol=1e-11)
    rows = [LazyKernelMatrix(Gaussian(0.3), X), LazyKernelMatrix(Linear(), X)]
    np.testing.assert_allclose(centred_gram(rows).numpy(), (naive @ naive.T)[np.ix_([0, 3], [0, 3])], rtol=1e-11)


def test_a_kernel_close_to_a_constant_keeps_its_digits(problem):
    # exp(-s) = 1 - s to first order, and centring takes away all of s = |x - z|^2 / (2 w^2) but x.z / w^2.
    X, _, _ = problem
    width = 1e4
    gram = centred_gram([LazyKernelMatrix(Gaussian(width), X), LazyKernelMatrix(Linear(), X)])
    cosine = float(gram[0, 1] / (gram[0, 0] * gram[1, 1]).sqrt())
    assert cosine == pytest.approx(1.0, abs=1e-6)
    assert float((gram[0, 0] / gram[1, 1]).sqrt()) == pytest.approx(width**-2, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_alignf_equals_the_best_of_all_sets_of_kernels(problem, seed):
    _, matrices, target = problem
    rng = np.random.default_rng(seed)
    scaled = [float(rng.lognormal(0, 3)) * K for K in matrices]
    noise = rng.normal(size=target.shape)
    goal = target + torch.from_numpy(noise + noise.T)
    expected = best_weights_by_enumeration([K.numpy() for K in scaled], goal.numpy())
    np.testing.assert_allclose(alignment_weights(scaled, goal).numpy(), expected, atol=1e-8)


def test_alignf_beats_random_weights(problem):
    _, matrices, target = problem
    mu = alignment_weights(matrices, target)

    def value(weights):
        return float(centred_alignment(sum(w * K for w, K in zip(weights, matrices, strict=True)), target))

    others = np.random.default_rng(0).dirichlet(np.full(5, 0.3), 300)
    assert value(mu) >= max(value(weights) for weights in others) - 1e-12


def test_align_weighs_each_kernel_by_its_own_alignment(problem):
    _, matrices, target = problem
    own = torch.stack([centred_alignment(K, target) for K in matrices])
    torch.testing.assert_close(alignment_weights(matrices, target, method="align"), own / own.norm())


def test_equal_kernels_do_not_matter(problem):
    _, matrices, target = problem
    mu = alignment_weights([matrices[1], matrices[1], 2.0 * matrices[1]], target)
    assert float(mu.norm()) == pytest.approx(1.0)
    assert (mu >= 0).all()


def test_constant_kernels_have_no_weight(problem):
    X, matrices, target = problem
    for method in ("align", "alignf"):
        mu = alignment_weights([LazyKernelMatrix(Constant(0.1), X), matrices[1]], target, method=method)
        assert mu.tolist() == [0.0, 1.0]


def test_the_ideal_kernel_of_many_classes_needs_no_scale(problem):
    _, matrices, _ = problem
    labels = torch.arange(30) % 3
    delta = LazyKernelMatrix(KroneckerDelta(), labels[:, None])
    whole = 2.0 * (labels[:, None] == labels).double() - 1.0
    torch.testing.assert_close(alignment_weights(matrices, delta), alignment_weights(matrices, whole))


def test_errors_are_sentences(problem):
    _, matrices, target = problem
    with pytest.raises(ValueError, match=r"same number of rows. Got \[30, 10\]"):
        alignment_weights([matrices[0]], target[:10, :10])
    for method in ("align", "alignf"):
        with pytest.raises(ValueError, match="No kernel is positively aligned"):
            alignment_weights([torch.ones_like(target)], target, method=method)
        with pytest.raises(ValueError, match="No kernel is positively aligned"):
            alignment_weights([-target], target, method=method)
