"""The border: user input becomes checked tensors."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator

from kernelwright.errors import MemoryBudgetError
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


def test_one_hot():
    np.testing.assert_array_equal(border.one_hot(np.array([2, 0, 2]), 3), [[0, 0, 1], [1, 0, 0], [0, 0, 1]])


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


tables = arrays(np.float64, st.tuples(st.integers(1, 8), st.just(2)), elements=st.sampled_from([-0.0, 0.0, 1.0, 2.5]))


@given(X=tables, seed=st.integers(0, 99))
def test_merge_duplicates_keeps_rows_labels_and_weights(X, seed):
    rng = np.random.default_rng(seed)
    y, w = rng.integers(0, 2, len(X)), rng.uniform(0.5, 2.0, len(X))
    found = border.merge_duplicates(X, y, w)
    distinct, labels, weights, place = found.X, found.y, found.weights, found.place
    np.testing.assert_array_equal(found.counts, np.bincount(place))
    np.testing.assert_array_equal(distinct[place], X)
    np.testing.assert_array_equal(labels[place], y)
    assert len({(*row, label) for row, label in zip((distinct + 0.0).tolist(), labels, strict=True)}) == len(distinct)
    for i in range(len(distinct)):
        same = [w[j] for j in range(len(X)) if (X[j] == distinct[i]).all() and y[j] == labels[i]]
        assert weights[i] == pytest.approx(sum(same))


@given(X=tables, seed=st.integers(0, 99))
def test_merge_duplicates_does_not_depend_on_the_order_of_the_rows(X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    y, w = np.arange(len(X)) % 2, np.ones(len(X))
    ours, theirs = border.merge_duplicates(X, y, w), border.merge_duplicates(X[order], y[order], w)
    for name in ("X", "y", "weights"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_rows_that_are_to_stay_apart_are_not_merged():
    X, y = np.zeros((4, 2)), np.zeros(4, dtype=int)
    found = border.merge_duplicates(X, y, np.ones(4), apart=np.array([1, 0, 1, 1]))
    assert found.weights.tolist() == [1.0, 3.0]
    assert found.apart.tolist() == [0, 1]
    assert found.place.tolist() == [1, 0, 1, 1]


def test_free_memory_is_a_plausible_number_of_bytes():
    assert 2**20 < border.free_memory() < 2**50


def test_a_job_that_does_not_fit_is_refused_with_numbers_and_advice(monkeypatch):
    monkeypatch.setattr(border, "free_memory", lambda: 2.0 * 2**30)
    border.check_memory(1.7 * 2**30, "A fit", "Use fewer rows.")
    with pytest.raises(
        MemoryBudgetError, match=r"A fit needs about 1\.9 GiB, and 2\.0 GiB are free\. Use fewer rows\."
    ):
        border.check_memory(1.9 * 2**30, "A fit", "Use fewer rows.")


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
