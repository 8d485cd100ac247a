"""Conformal prediction sets against loops."""

import math

import numpy as np
import pytest
import torch

from kernelwright.embedding.fitted import LeftOutRows
from kernelwright.uncertainty.calibration import ClipMap, Link, SoftmaxMap
from kernelwright.uncertainty.conformal import CalibrationScores, scores_of, smaller_scores

RNG = np.random.default_rng(0)
M = 3
each_kind = pytest.mark.parametrize("class_conditional", [False, True], ids=["all", "own class"])


def tensor(values) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float64))


def calibration(class_conditional: bool, coverage: float = 0.8, n: int = 30) -> CalibrationScores:
    rng = np.random.default_rng(1)
    labels, counts = torch.from_numpy(rng.integers(0, M, n)), tensor(rng.integers(1, 4, n))
    return CalibrationScores(tensor(rng.normal(size=n)), labels, counts, coverage, class_conditional)


def test_a_score_is_the_log_odds_against_a_class():
    p = RNG.dirichlet(np.ones(M), 20)
    np.testing.assert_allclose(scores_of(tensor(np.log(p))), np.log((1 - p) / p), rtol=1e-9)
    certain = scores_of(tensor([[0.0, -math.inf, -math.inf]]))[0]
    assert certain[0] < -1e300  # as far as numbers go
    assert float(certain[1:].min()) > 1e300


def test_scores_of_sure_rows_differ_where_probabilities_are_equal_by_rounding():
    log_p = tensor([[-1e-30, -70.0, -71.0], [-1e-35, -80.0, -81.0]])
    assert log_p[0, 0].exp() == log_p[1, 0].exp() == 1.0
    assert scores_of(log_p)[0, 0] > scores_of(log_p)[1, 0]


@each_kind
def test_smaller_scores_are_counted_with_their_rows(class_conditional):
    given = calibration(class_conditional)
    new = np.vstack([RNG.normal(size=(10, M)), given.scores.numpy()[:M]])  # the last are equal to some
    found = given.smaller(tensor(new))
    for i, k in np.ndindex(*new.shape):
        own = (given.labels == k).numpy() if class_conditional else np.ones(30, dtype=bool)
        expected = sum(float(c) for s, c, o in zip(given.scores, given.counts, own, strict=True) if o and s < new[i, k])
        assert float(found[i, k]) == expected


@each_kind
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.99])
def test_a_class_is_out_if_enough_scores_are_smaller(class_conditional, coverage):
    given = calibration(class_conditional, coverage)
    compared = given.compared(M)
    for k in range(M):
        own = given.counts[given.labels == k].sum() if class_conditional else given.counts.sum()
        assert float(compared[k]) == float(own)
    n = int(compared.min())
    for smaller in range(n + 1):
        inside = given.sets(torch.full((1, M), float(smaller), dtype=torch.float64))
        expected = [smaller < coverage * (float(compared[k]) + 1) - 1e-9 for k in range(M)]
        assert inside[0].tolist() == expected


def test_a_limit_is_not_missed_by_rounding():
    """0.56 * 100 is a little above 56 in binary: a class that 56 scores are below is out."""
    given = CalibrationScores(torch.zeros(99).double(), torch.zeros(99).long(), torch.ones(99).double(), 0.56, False)
    assert given.sets(tensor([[55.0], [56.0]])).tolist() == [[True], [False]]


@each_kind
def test_new_rows_are_covered_as_often_as_promised(class_conditional):
    rng = np.random.default_rng(2)
    hits = []
    for _ in range(4000):
        labels, scores = rng.integers(0, M, 61), rng.normal(size=61)
        first = CalibrationScores(
            tensor(scores[:60]), torch.from_numpy(labels[:60]), torch.ones(60).double(), 0.8, class_conditional
        )
        new = tensor(np.full((1, M), scores[60]))
        hits.append(bool(first.sets(first.smaller(new))[0, labels[60]]))
    # With n scores it is ceil(0.8 (n + 1)) / (n + 1): 49 / 61 of all, and about 0.82 of the 20 of one class.
    assert np.mean(hits) == pytest.approx(0.82 if class_conditional else 49 / 61, abs=0.02)


@each_kind
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize("probability_map", [SoftmaxMap(3.0), ClipMap()], ids=["softmax", "clip"])
def test_the_jackknife_compares_each_row_by_the_model_without_it(class_conditional, grouped, probability_map):
    rng, n = np.random.default_rng(3), 8
    labels = torch.from_numpy(np.arange(n) % M)
    groups = torch.from_numpy(np.arange(n) // 2) if grouped else None
    counts = tensor(rng.integers(1, 3, n))
    left_out = LeftOutRows(
        basis=tensor(rng.normal(size=(5, n))),
        change=tensor(0.1 * rng.normal(size=(n, M))),
        outputs=tensor(rng.uniform(0, 1, (n, M))),
        support=torch.ones(n, dtype=torch.float64),
        strata=labels,
        counts=counts,
        groups=groups,
    )
    link = Link(probability_map, tensor([0.2, 0.3, 0.5]), trust=0.9)
    values, outputs, support = (
        tensor(rng.normal(size=(4, 5))),
        tensor(rng.uniform(0, 1, (4, M))),
        tensor([1.0, 0.4, 0.0, 2.0]),
    )
    own = CalibrationScores(tensor(rng.normal(size=n)), labels, counts, 0.8, class_conditional)
    found = smaller_scores(left_out, (values, outputs, support), own, link)
    for x, k in np.ndindex(4, M):
        total = 0.0
        for i in range(n):
            gone = [j for j in range(n) if j == i or (grouped and groups[j] == groups[i])]
            lost = sum(float(values[x] @ left_out.basis[:, j]) * left_out.change[j] for j in gone)
            log_p = link((outputs[x] - lost)[None], support[x : x + 1])
            if (not class_conditional or int(labels[i]) == k) and own.scores[i] < scores_of(log_p)[0, k]:
                total += float(counts[i])
        assert float(found[x, k]) == total
