"""Nystroem features: exact at the landmarks, which are chosen only once."""

import numpy as np
import pytest
import torch

from kernelwright.features import Nystroem
from kernelwright.kernels import Gaussian, Spectrum

X = np.random.default_rng(0).normal(size=(40, 4))


@pytest.mark.parametrize("landmarks", ["uniform", "leverage"])
def test_nystroem_is_exact_where_a_point_is_a_landmark(landmarks):
    kernel = Gaussian(2.0)
    features = Nystroem(kernel, 15, landmarks).fit(X)
    points = features.points.numpy()
    assert len(points) == 15
    np.testing.assert_allclose(features(X) @ features(points).T, kernel(X, points), atol=1e-6)


def test_nystroem_with_kmeans_puts_a_landmark_into_each_heap():
    heaps = np.repeat(10.0 * np.eye(4), 10, axis=0) + 0.01 * X
    points = Nystroem(Gaussian(), 4, "kmeans").fit(heaps).points.numpy()
    assert sorted(points.argmax(1)) == [0, 1, 2, 3]


def test_leverage_favours_points_that_others_do_not_explain():
    lonely = np.vstack(
        [0.01 * np.random.default_rng(3).normal(size=(300, 2)), [[30.0, 0.0], [0.0, 30.0], [-30.0, 0.0]]]
    )
    found = {rule: Nystroem(Gaussian(), 20, rule, seed=1).fit(lonely).points.numpy() for rule in Nystroem.RULES[::2]}
    assert (np.abs(found["leverage"]).max(1) > 10).sum() == 3
    assert (np.abs(found["uniform"]).max(1) > 10).sum() < 3


def test_nystroem_of_an_indefinite_kernel_is_that_of_the_flipped_one():
    class Difference(Gaussian):
        """A wide Gaussian minus a narrow one: symmetric and indefinite."""

        definite = False

        def forward(self, X, Z=None):
            return super().forward(X, Z) - 0.8 * Gaussian(0.3).forward(X, Z)

    X = torch.randn(15, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    features = Nystroem(Difference(2.0), n_landmarks=15).fit(X)
    K = Difference(2.0).forward(X).detach()
    values, vectors = torch.linalg.eigh(K)
    assert float(values.min()) < -0.1
    Z = features(X).detach()
    assert torch.allclose(Z @ Z.T, (vectors * values.abs()) @ vectors.T, atol=1e-8)
    assert features.n_features == Z.shape[1]


def test_landmarks_are_chosen_anew_only_when_asked():
    features = Nystroem(Gaussian(), 10).fit(X)
    before = features.points.clone()
    features.prepare_(torch.from_numpy(X + 1.0))
    assert torch.equal(features.points, before)
    features(X[:5] + 2.0)
    assert torch.equal(features.points, before)
    assert torch.equal(features.fit(X + 1.0).points, before + 1.0)


def test_a_changed_number_of_landmarks_takes_effect_after_use():
    assert Nystroem(Gaussian(), 10).fit(X).set_params(n_landmarks=20).fit(X)(X).shape == (40, 20)


def test_the_root_of_an_indefinite_kernel_is_there_before_it_is_used():
    class Difference(Gaussian):
        definite = False

        def forward(self, X, Z=None):
            return super().forward(X, Z) - 0.8 * Gaussian(0.3).forward(X, Z)

    features = Nystroem(Difference(2.0), 12).fit(X)
    before = {name: value.clone() for name, value in features.state_dict().items()}
    features(X)
    assert features.n_features == before["root"].shape[1]
    assert all(torch.equal(value, before[name]) for name, value in features.state_dict().items())


def test_points_need_not_be_vectors():
    words = ["ABAB", "BABA", "CCCC", "ABCC"]
    kernel = Spectrum(k=2)
    features = Nystroem(kernel, 4).fit(words)
    Z = features(kernel.encode(words)).numpy()
    np.testing.assert_allclose(Z @ Z.T, kernel(words), atol=1e-6)
    longer = features(kernel.encode(["ABABABABCC"])).numpy()  # of another width, as a tensor
    np.testing.assert_allclose(longer @ Z.T, kernel(["ABABABABCC"], words), atol=1e-6)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="'landmarks' parameter of Nystroem must be one of"):
        Nystroem(landmarks="best")


@pytest.mark.parametrize("given", [200, "rbf", Gaussian])
def test_a_number_or_a_name_is_no_kernel(given):
    with pytest.raises(ValueError, match="must be a kernel"):
        Nystroem(given)
