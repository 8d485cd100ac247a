"""User input becomes checked tensors."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator

from kernelwright import KreinSVC
from kernelwright.inputs import arrays as border

EXPECTED = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def _read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


@pytest.mark.parametrize(
    "X",
    [
        EXPECTED.tolist(),
        EXPECTED.astype(np.float32),
        EXPECTED.astype(int),
        np.asfortranarray(EXPECTED),
        EXPECTED[::-1].copy()[::-1],
        np.repeat(EXPECTED, 2, axis=1)[:, ::2],
        _read_only(EXPECTED),
        torch.from_numpy(EXPECTED),
        torch.from_numpy(EXPECTED).to(torch.int64),
    ],
    ids=["list", "float32", "int", "fortran", "negative-stride", "strided", "read-only", "tensor", "int-tensor"],
)
def test_as_matrix_gives_a_float64_tensor(X):
    tensor = border.as_matrix(X)
    assert tensor.dtype == torch.float64
    np.testing.assert_array_equal(tensor, EXPECTED)


def test_as_matrix_copies_only_where_it_must():
    X = EXPECTED.copy()
    assert border.as_matrix(X).data_ptr() == X.ctypes.data


@pytest.mark.parametrize(
    "X",
    [[1.0, 2.0], 3.0, [[[1.0]]], torch.zeros(3), torch.zeros(2, 2, 2)],
    ids=["list", "number", "3-D", "vector-tensor", "3-D-tensor"],
)
def test_as_matrix_refuses_what_is_not_a_matrix(X):
    with pytest.raises(ValueError, match=r"Expected a 2-D array of numbers .* Got shape"):
        border.as_matrix(X)


def test_generators_of_equal_seeds_are_equal_and_touch_no_global_state():
    before, state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    draws = [torch.rand(3, generator=border.generator(5)) for _ in range(2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], torch.rand(3, generator=border.generator(6)))
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], state[1])  # noqa: NPY002


def test_a_random_state_moves_on_with_every_generator():
    state = np.random.RandomState(0)
    draws = [torch.rand(3, generator=border.generator(state)) for _ in range(2)]
    assert not torch.equal(draws[0], draws[1])


TABLE = np.random.default_rng(0).normal(size=(6, 2))


@pytest.mark.parametrize(
    "given",
    [
        torch.tensor(TABLE, requires_grad=True),
        torch.tensor(TABLE, requires_grad=True) * 1.0,  # within a graph
        [torch.tensor(row, requires_grad=True) for row in TABLE],
        torch.tensor(TABLE),
        TABLE,
        TABLE.tolist(),
    ],
    ids=["leaf", "graph", "list", "tensor", "array", "lists"],
)
def test_tensors_are_taken_for_their_values(given):
    np.testing.assert_array_equal(np.asarray(border.plain(given)), TABLE)
    np.testing.assert_array_equal(border.validate_data(BaseEstimator(), given, dtype=np.float64), TABLE)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.bool, torch.uint64])
def test_tensors_of_any_precision_are_taken(dtype):
    values = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    np.testing.assert_array_equal(border.validate_data(BaseEstimator(), values, dtype=np.float64), [[0, 1], [1, 0]])


def test_what_is_no_tensor_stays_what_it_is():
    for value in (pd.DataFrame({"a": [1.0]}), [[1, 2]], "no_validation", None):
        assert border.plain(value) is value


@pytest.mark.parametrize("given", [torch.empty(2, 2, device="meta"), torch.eye(2).to_sparse()], ids=["meta", "sparse"])
def test_a_tensor_without_values_is_refused(given):
    with pytest.raises(TypeError, match="convert"):
        border.validate_data(BaseEstimator(), given)


def test_a_number_beyond_double_precision_is_refused_in_words():
    with pytest.raises(ValueError, match="too large for double precision"):
        border.validate_data(BaseEstimator(), np.array([[10**400, 1]], dtype=object), dtype=np.float64)


def test_whole_numbers_beyond_63_bits_keep_their_size():
    given = np.array([[2**63 + 2048, 2**64 - 2048]], dtype=np.uint64)
    expected = [[2.0**63 + 2048, 2.0**64 - 2048]]
    np.testing.assert_array_equal(border.validate_data(BaseEstimator(), given, dtype=np.float64), expected)
    np.testing.assert_array_equal(border.as_matrix(given), expected)
    np.testing.assert_array_equal(border.as_matrix(torch.from_numpy(given)), expected)


def test_gaps_and_text_in_arrays_are_answered_by_what_to_do():
    with pytest.raises(ValueError, match=r"contains NaN.*pass a data frame to fit, or fill") as found:
        border.validate_data(KreinSVC(), np.array([[1.0], [np.nan]]))
    assert "HistGradientBoosting" not in str(found.value)
    with pytest.raises(ValueError, match=r"'a'. Pass a data frame to fit: .* become categories"):
        border.validate_data(KreinSVC(), np.array([["a"], ["b"]], dtype=object), dtype=np.float64)
    with pytest.raises(ValueError, match="inhomogeneous"):
        border.validate_data(KreinSVC(), [[1.0], [1.0, 2.0]])
