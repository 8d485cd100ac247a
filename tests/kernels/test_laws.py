"""Laws that every kernel satisfies, on one list of kernels."""

import copy
import pickle

import joblib
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from kernelwright.kernels import Kernel
from kernelwright.numerics import distances
from tests import reference as naive
from tests.cases import CASES, LEARNABLE_CASES, VECTOR_CASES, Case

every_kernel = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
vector_kernel = pytest.mark.parametrize("case", VECTOR_CASES, ids=lambda case: case.id)
few = settings(max_examples=12)  # for each of some thirty kernels
learnable_kernel = pytest.mark.parametrize("case", LEARNABLE_CASES, ids=lambda case: case.id)


def close(a, b, tol=1e-10):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


# Values ------------------------------------------------------------------------------------------------------


@every_kernel
@few
@given(data=st.data())
def test_values_equal_the_naive_formula(case: Case, data):
    X = data.draw(case.any_points())
    close(case.make()(X), naive.gram(case.pair, X), 1e-9)


@every_kernel
def test_values_between_two_sets_equal_the_naive_formula(case: Case):
    X, Z = case.random_points(6, seed=1), case.random_points(4, seed=2)
    close(case.make()(X, Z), naive.gram(case.pair, X, Z))


@every_kernel
@few
@given(data=st.data())
def test_symmetric(case: Case, data):
    K = case.make()(data.draw(case.any_points()))
    close(K, K.T, 1e-13)


@every_kernel
def test_the_matrix_by_blocks_is_the_matrix(case: Case, monkeypatch):
    monkeypatch.setattr("kernelwright.kernels.base.BLOCK_ROWS", 3)
    kernel = case.make()
    points = kernel.encode_training(case.random_points(8, seed=1))
    close(kernel.matrix(points), kernel.forward(points).detach())


@every_kernel
def test_exchanging_the_sets_transposes(case: Case):
    kernel, X, Z = case.make(), case.random_points(6, seed=1), case.random_points(4, seed=2)
    close(kernel(X, Z), kernel(Z, X).T, 1e-13)


@every_kernel
@few
@given(data=st.data())
def test_positive_semidefinite(case: Case, data):
    K = case.make()(data.draw(case.any_points()))
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * max(1.0, np.trace(K))


@every_kernel
@few
@given(data=st.data())
def test_diag_equals_the_diagonal_of_the_matrix(case: Case, data):
    kernel, X = case.make(), data.draw(case.any_points())
    close(kernel.diag(X), np.diagonal(kernel(X)))


@every_kernel
@few
@given(data=st.data())
def test_one_argument_means_the_same_points_twice(case: Case, data):
    kernel, X = case.make(), data.draw(case.any_points())
    close(kernel(X), kernel(X, X))


@every_kernel
@few
@given(data=st.data())
def test_values_of_a_row_do_not_depend_on_the_other_rows(case: Case, data):
    kernel, X = case.make(), data.draw(case.any_points())
    close(kernel(X, X), np.vstack([kernel(X[i : i + 1], X) for i in range(len(X))]))


@vector_kernel
def test_every_entry_of_the_matrix_is_its_own(case: Case):
    K = case.make()(case.random_points(3))
    before = K.copy()
    K[0, 1] += 1.0
    before[0, 1] += 1.0
    np.testing.assert_array_equal(K, before)


# The largest value -------------------------------------------------------------------------------------------


@every_kernel
@few
@given(data=st.data())
def test_sup_diag_bounds_the_diagonal(case: Case, data):
    kernel, X = case.make(), data.draw(case.any_points())
    assert kernel.diag(X).max() <= float(kernel.sup_diag(X).detach()) * (1 + 1e-12) + 1e-12


@every_kernel
def test_sup_diag_is_known_without_points_or_is_the_largest_value_over_them(case: Case):
    kernel, X = case.make(), case.random_points(7)
    if kernel.bounded:
        assert float(kernel.sup_diag().detach()) == pytest.approx(float(kernel.sup_diag(X).detach()), rel=1e-14)
    else:
        assert float(kernel.sup_diag(X).detach()) == pytest.approx(kernel.diag(X).max(), rel=1e-14)
        with pytest.raises(ValueError, match=r"no known upper bound .* kernel\.sup_diag\(X\)"):
            kernel.sup_diag()


# Kinds of input ----------------------------------------------------------------------------------------------


@every_kernel
def test_arrays_give_arrays_and_tensors_give_equal_tensors(case: Case):
    kernel, X, Z = case.make(), case.random_points(6, seed=1), case.random_points(4, seed=2)
    for array, tensor in [
        (kernel(X), kernel(kernel.encode(X))),
        (kernel(X, Z), kernel(kernel.encode(X), kernel.encode(Z))),
        (kernel.diag(X), kernel.diag(kernel.encode(X))),
    ]:
        assert isinstance(array, np.ndarray)
        assert array.dtype == np.float64
        assert torch.is_tensor(tensor)
        close(array, tensor.detach(), 1e-14)


@vector_kernel
def test_lists_and_unusual_arrays_are_taken(case: Case):
    kernel, X = case.make(), case.random_points(5)
    frozen = X.copy()
    frozen.setflags(write=False)
    for same in (X.tolist(), np.asfortranarray(X), X[::-1].copy()[::-1], frozen):
        close(kernel(same), kernel(X), 1e-14)


@learnable_kernel
def test_values_of_tensors_carry_gradients_in_the_parameters(case: Case):
    kernel = case.make()
    kernel(kernel.encode(case.random_points(5))).sum().backward()
    assert all(p.grad is not None for p in kernel.parameters())


# Copies and parameters ---------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda kernel: pickle.loads(pickle.dumps(kernel)), clone],
    ids=["deepcopy", "pickle", "clone"],
)
def test_copies_keep_the_values_and_share_nothing(case: Case, duplicate):
    kernel, X = case.make(), case.random_points(5)
    twin = duplicate(kernel)
    before = kernel(X)
    np.testing.assert_array_equal(twin(X), before)
    with torch.no_grad():
        for p in twin.parameters():
            p += 0.5
    np.testing.assert_array_equal(kernel(X), before)


@every_kernel
def test_equal_kernels_have_equal_hashes_in_a_cache(case: Case):
    assert joblib.hash(case.make()) == joblib.hash(copy.deepcopy(case.make()))


@learnable_kernel
def test_copies_know_what_is_frozen(case: Case):
    kernel = case.make()
    for frozen, _ in kernel.named_parameters():
        kernel.requires_grad_(True)
        kernel.get_parameter(frozen).requires_grad_(False)
        for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
            assert [name for name, p in twin.named_parameters() if not p.requires_grad] == [frozen]


@every_kernel
def test_a_kernel_is_made_again_by_its_parameters(case: Case):
    kernel, X = case.make(), case.random_points(5)
    again = type(kernel)(**kernel.get_params(deep=False))
    close(again(X), kernel(X), 1e-13)


@every_kernel
def test_setting_the_own_parameters_changes_nothing(case: Case):
    kernel, X = case.make(), case.random_points(5)
    before = kernel(X)
    assert kernel.set_params(**kernel.get_params()) is kernel
    close(kernel(X), before, 1e-13)


@learnable_kernel
def test_a_parameter_that_is_set_is_read_back(case: Case):
    kernel = case.make()
    for name, value in kernel.get_params().items():
        if isinstance(value, float) and not name.endswith("nu"):  # nu takes three values only
            kernel.set_params(**{name: value * 1.5})
            assert kernel.get_params()[name] == pytest.approx(value * 1.5, rel=1e-14)


@every_kernel
def test_an_unknown_parameter_is_refused_by_name(case: Case):
    with pytest.raises(ValueError, match=r"Invalid parameter 'colour' for .* Valid parameters are"):
        case.make().set_params(colour=1.0)


@every_kernel
def test_repr_names_the_class_and_each_argument(case: Case):
    kernel = case.make()
    text = repr(kernel)
    assert text.startswith(f"{type(kernel).__name__}(")
    assert all(f"{name}=" in text for name in kernel.get_params(deep=False))


# Gradients ---------------------------------------------------------------------------------------------------


def autograd_pullback(kernel: Kernel, X: torch.Tensor, dK: torch.Tensor) -> dict[str, torch.Tensor]:
    parameters = {name: p for name, p in kernel.named_parameters() if p.requires_grad}
    grads = torch.autograd.grad(kernel.forward(X), list(parameters.values()), dK, allow_unused=True)
    return {
        name: torch.zeros_like(p) if g is None else g for (name, p), g in zip(parameters.items(), grads, strict=True)
    }


def random_direction(n: int) -> torch.Tensor:
    """Return a matrix that is not symmetric: only the symmetric part of a gradient matters."""
    return torch.from_numpy(np.random.default_rng(5).normal(size=(n, n)))


@every_kernel
def test_vjp_returns_the_kernel_matrix(case: Case):
    kernel = case.make()
    X = kernel.encode(case.random_points(7))
    K, _ = kernel.vjp(X)
    assert not K.requires_grad
    close(K, kernel.forward(X).detach(), 1e-14)


@learnable_kernel
@pytest.mark.parametrize("compiled_from", [0, 10**12], ids=["compiled", "plain"])
def test_pullback_equals_autograd(case: Case, compiled_from, monkeypatch):
    kernel = case.make()
    X, dK = kernel.encode(case.random_points(7)), random_direction(7)
    expected = autograd_pullback(kernel, X, dK)
    monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
    _, pullback = kernel.vjp(X)
    found = pullback(dK)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert found[name].shape == gradient.shape, name
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-11)


@learnable_kernel
def test_pullback_of_points_that_coincide_is_finite_and_equals_autograd(case: Case):
    kernel = case.make()
    points = case.random_points(3)
    points = [*points, *points] if case.points == "strings" else np.round(np.vstack([points, points]), 1)
    X, dK = kernel.encode(points), random_direction(6)
    expected = autograd_pullback(kernel, X, dK)
    for name, gradient in kernel.vjp(X)[1](dK).items():
        assert torch.isfinite(gradient).all(), name
        torch.testing.assert_close(gradient, expected[name], rtol=1e-7, atol=1e-7)


@learnable_kernel
def test_pullback_leaves_out_a_frozen_parameter(case: Case):
    names = [name for name, _ in case.make().named_parameters()]
    for frozen in names:
        kernel = case.make()
        kernel.get_parameter(frozen).requires_grad_(False)
        X, dK = kernel.encode(case.random_points(5)), random_direction(5)
        assert set(kernel.vjp(X)[1](dK)) == set(names) - {frozen}


@learnable_kernel
def test_a_frozen_parameter_stays_frozen_when_it_is_set(case: Case):
    kernel = case.make()
    for p in kernel.parameters():
        p.requires_grad_(False)
    kernel.set_params(**kernel.get_params())
    assert not any(p.requires_grad for p in kernel.parameters())
