"""Hyper-kernels against their defining integrals, and the laws of definition 1."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import kernelwright as kw
from kernelwright.hyper.kernels import Gaussian, Sum, Wishart

HYPERKERNELS = [
    Gaussian(sigma=0.8, sigma_h=0.5),
    Gaussian(sigma=1.5, sigma_h=1.0, form="printed"),
    Gaussian(sigma=1.0, sigma_h=1.0, lengthscale=[0.5, 2.0]),
    Wishart(delta=1.3, nu=4),
    Wishart(delta=0.7, nu=1),
    Wishart(delta=1.0, nu=3, D=[[2.0, 0.5], [0.5, 1.0]]),
    Sum([Gaussian(sigma=0.5, sigma_h=2.0), Gaussian(sigma=2.0, sigma_h=0.1), Wishart(delta=1.0)]),
]


def names(kernel):
    return type(kernel).__name__


def random_pairs(seed, n, d=2):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)), random.normal(size=(n, d))


def test_gaussian_is_the_integral_of_its_definition():
    # kk = int int <x, t> <x', t> h(t - t') <r, t'> <s, t'> dt dt' with Gaussians of variance sigma^2 and h of
    # sigma_h^2, in one dimension, up to a constant: so ratios of values are compared.
    sigma, sigma_h = 0.7, 0.9

    def integral(x, y, r, s):
        def f(t, u):
            inner = np.exp(-((x - t) ** 2 + (y - t) ** 2 + (r - u) ** 2 + (s - u) ** 2) / (2 * sigma**2))
            return inner * np.exp(-((t - u) ** 2) / (2 * sigma_h**2))

        return integrate.dblquad(f, -8, 8, -8, 8, epsabs=1e-11)[0]

    quadruples = [(0.0, 0.0, 0.0, 0.0), (0.3, -0.5, 0.8, 0.1), (1.0, 0.2, -0.4, -0.9), (-1.0, -1.0, 0.5, 0.7)]
    exact = np.array([integral(*q) for q in quadruples])
    kernel = Gaussian(sigma=sigma, sigma_h=sigma_h)
    ours = np.array([kernel(([[x]], [[y]]), ([[r]], [[s]]))[0, 0] for x, y, r, s in quadruples])
    assert np.allclose(ours / ours[0], exact / exact[0], rtol=1e-7)


def test_wishart_is_the_average_of_gaussians_over_inverse_wishart_covariances():
    # Given Sigma, int prod_i N(x_i; t, Sigma) dt is proportional to |Sigma|^(-3/2) exp(-tr(Sigma^-1 S) / 2).
    d, b, delta = 3, 5, 1.5
    random = np.random.default_rng(0)
    points = random.normal(size=(3, 4, d))
    covariances = stats.invwishart(df=b, scale=delta * np.eye(d)).rvs(400_000, random_state=1)
    inverses, determinants = np.linalg.inv(covariances), np.linalg.det(covariances)
    estimates = []
    for four in points:
        centred = four - four.mean(0)
        estimates.append(
            (determinants**-1.5 * np.exp(-0.5 * np.einsum("pi,nij,pj->n", centred, inverses, centred))).mean()
        )
    kernel = Wishart(delta=delta, nu=b + 3)
    ours = np.array([kernel((p[0:1], p[1:2]), (p[2:3], p[3:4]))[0, 0] for p in points])
    assert np.allclose(ours / ours[0], np.array(estimates) / estimates[0], rtol=0.03)


def test_wishart_equals_the_determinant_of_the_scatter():
    X, Y = random_pairs(0, 5, d=4)
    R, S = random_pairs(1, 3, d=4)
    D = np.diag([1.0, 2.0, 0.5, 1.5]) + 0.1
    ours = Wishart(delta=1.0, nu=5, D=D)((X, Y), (R, S))
    for i, j in itertools.product(range(5), range(3)):
        four = np.stack([X[i], Y[i], R[j], S[j]])
        scatter = (four - four.mean(0)).T @ (four - four.mean(0))
        assert np.isclose(ours[i, j], (np.linalg.det(D + scatter) / np.linalg.det(D)) ** (-5 / 2), rtol=1e-10)


def test_wishart_of_large_exponent_is_gaussian_without_relevance():
    (X, Y), (R, S) = random_pairs(0, 6), random_pairs(1, 6)
    b = 1e6
    wishart = Wishart(delta=b, nu=int(b) + 3)((X, Y), (R, S))  # Sigma concentrates at delta/b = 1
    assert np.allclose(wishart, Gaussian(sigma=1.0, sigma_h=1e-5)((X, Y), (R, S)), atol=1e-5)


@pytest.mark.parametrize("kernel", HYPERKERNELS, ids=names)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_symmetries_of_definition_1(kernel, seed):
    (X, Y), (R, S) = random_pairs(seed, 3), random_pairs(seed + 1, 4)
    K = kernel((X, Y), (R, S))
    for other in (kernel((Y, X), (R, S)), kernel((X, Y), (S, R)), kernel((R, S), (X, Y)).T):
        assert np.allclose(K, other, rtol=1e-10)


@pytest.mark.parametrize("kernel", HYPERKERNELS, ids=names)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 10.0))
@settings(max_examples=20, deadline=None)
def test_positive_definite_between_pairs_and_in_its_second_argument(kernel, seed, scale):
    X, Y = (scale * half for half in random_pairs(seed, 12))
    assert np.linalg.eigvalsh(kernel((X, Y), (X, Y))).min() > -1e-10
    points = X[:8]
    i, j = np.divmod(np.arange(64), 8)
    for pair in range(3):
        K = kernel((X[pair : pair + 1], Y[pair : pair + 1]), (points[i], points[j])).reshape(8, 8)
        assert np.linalg.eigvalsh(0.5 * (K + K.T)).min() > -1e-10


def test_wishart_is_invariant_under_all_permutations():
    points = np.random.default_rng(0).normal(size=(4, 3))
    kernel = Wishart(delta=1.0, nu=4)
    values = [
        kernel((points[[a]], points[[b]]), (points[[c]], points[[d]]))[0, 0]
        for a, b, c, d in itertools.permutations(range(4))
    ]
    assert np.ptp(values) < 1e-12


def test_defaults_come_from_the_total_variance():
    X = torch.randn(200, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3.0
    total = float(X.var(0, correction=0).sum())
    kernel, wishart, several = Gaussian(), Wishart(), Sum()
    assert kernel.get_params() == {"sigma": None, "sigma_h": None, "form": "integral", "lengthscale": 1.0}
    for k in (kernel, wishart, several):
        k.prepare_(X)
    assert float(kernel.sigma.detach()) ** 2 == pytest.approx(total)
    assert float(wishart.delta.detach()) == pytest.approx(total)
    a, c = (w.detach() for w in several.widths())
    assert float(a.max()) == pytest.approx(50 * total)
    assert torch.allclose(c, c[0])
    assert bool((c >= a / 4).all())  # each function is a kernel


def test_constants_do_not_overflow_at_sixty_features():
    X, Y = random_pairs(0, 20, d=60)
    for kernel in (Gaussian(), Wishart(), Sum()):
        kernel.prepare_(torch.from_numpy(X))
        K = kernel((X, Y), (X, Y))
        assert np.isfinite(K).all()
        assert K.max() > 1e-3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(form="both").widths(), "'integral' or 'printed'"),
        (lambda: Gaussian(sigma=-1.0), "positive number"),
        (lambda: Wishart(nu=1.5)(random_pairs(0, 2), random_pairs(0, 2)), "whole number"),
        (lambda: Wishart(D=[[1.0, 2.0], [0.0, 1.0]])(random_pairs(0, 2), random_pairs(0, 2)), "symmetric"),
        (lambda: Sum([]), "at least one"),
        (lambda: Sum([1.0]), "hyper-kernel"),
        (lambda: Sum()(random_pairs(0, 2), random_pairs(0, 2)), "prepare"),
        (lambda: Gaussian()(random_pairs(0, 2), random_pairs(0, 2, d=3)), "as many features"),
        (lambda: Gaussian(lengthscale=[1.0, 2.0, 3.0])(random_pairs(0, 2), random_pairs(0, 2)), "3 length scales"),
        (lambda: Wishart(D=np.eye(3))(random_pairs(0, 2), random_pairs(0, 2)), "D is for points with 3 features"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_number_that_is_set_stays_and_one_that_is_taken_back_is_open_again():
    X = torch.from_numpy(random_pairs(0, 50)[0])
    kernel = Gaussian().set_params(sigma=0.5)
    kernel.prepare_(X)
    assert float(kernel.sigma.detach()) == pytest.approx(0.5)
    assert float(kernel.sigma_h.detach()) == pytest.approx(0.5)
    kernel.set_params(sigma=None)
    assert kernel.get_params()["sigma"] is None
    kernel.prepare_(X)
    assert float(kernel.sigma.detach()) != pytest.approx(0.5)
    wishart = Wishart().set_params(delta=3.0)
    wishart.prepare_(X)
    assert float(wishart.delta.detach()) == pytest.approx(3.0)


def test_parts_of_a_sum_see_points_as_they_divide_them():
    X = torch.from_numpy(random_pairs(0, 50)[0])
    several = Sum([Gaussian(lengthscale=100.0), Gaussian()])
    several.prepare_(X)
    a, _ = several.widths()
    assert float(a[0].detach()) == pytest.approx(float(a[1].detach()))


def test_a_matrix_that_is_set_later_whitens_too():
    first, second = random_pairs(0, 4), random_pairs(1, 4)
    D = np.array([[2.0, 0.3], [0.3, 1.0]])
    later = Wishart(delta=1.0).set_params(D=D)
    assert np.allclose(later(first, second), Wishart(delta=1.0, D=D)(first, second))
    assert np.allclose(later.set_params(D=None)(first, second), Wishart(delta=1.0)(first, second))
    with pytest.raises(ValueError, match="positive definite"):
        Wishart(D=-np.eye(2))


def test_a_sum_is_that_of_its_parts():
    X = np.random.default_rng(0).normal(size=(5, 2))
    parts = [Gaussian(sigma=1.0), Gaussian(sigma=2.0), Wishart(delta=1.0, nu=4, D=np.eye(2))]
    pairs = (X, X[::-1].copy())
    np.testing.assert_allclose(Sum(parts)(pairs, pairs), sum(part(pairs, pairs) for part in parts), rtol=1e-12)


@pytest.mark.parametrize("make", [Gaussian, Wishart, Sum], ids=lambda make: make.__name__)
def test_points_too_large_for_a_variance_are_refused_in_words(make):
    with pytest.raises(ValueError, match="variance overflows"):
        make().prepare_(torch.tensor([[0.0], [1e200]], dtype=torch.float64))


def test_a_matrix_among_the_parameters_is_named_by_its_shape():
    assert repr(Wishart(D=np.eye(2))).count("<array of shape (2, 2)>") == 1


@pytest.mark.parametrize("make", [Gaussian, Wishart, Sum], ids=lambda make: make.__name__)
def test_copies_leave_the_hyperkernel_as_it_was(make):
    X = torch.from_numpy(random_pairs(0, 50)[0])
    kernel, in_place = make(), make()
    before = repr(kernel)
    made = kernel.prepared(X)
    in_place.prepare_(X)
    assert repr(made) == repr(in_place) != before
    free = made.with_free_metric(2)
    assert free.lengthscale.shape == (2,)
    fixed = free.fixed()
    assert not any(parameter.requires_grad for parameter in fixed.parameters())
    assert free.log_lengthscale.requires_grad
    assert fixed.fixed() is fixed
    assert repr(kernel) == before
    assert repr(made) == repr(in_place)


def test_public_names_are_those_of_the_room():
    assert kw.hyperkernels.Gaussian is Gaussian
    assert {"Gaussian", "Sum", "Wishart"} <= set(kw.hyperkernels.__all__)
