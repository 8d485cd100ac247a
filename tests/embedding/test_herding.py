import numpy as np
import pytest
import torch

from kernelwright.embedding.herding import herd
from kernelwright.kernels import Gaussian


def naive_herd(L, w, size):
    """Compute Eq. (8) of Chen, Welling and Smola (2010), one candidate at a time."""
    picks = []
    for t in range(1, size + 1):
        gains = []
        for y in range(len(L)):
            attraction = sum(w[j] * L[j, y] for j in range(len(L)))
            repulsion = sum(L[s, y] for s in picks) / t
            gains.append(attraction - repulsion)
        picks.append(int(np.argmax(gains)))
    return picks


def mmd(L, w, picks):
    """Compute the distance between an embedding and the mean of the chosen points."""
    gap = w - np.bincount(picks, minlength=len(w)) / len(picks)
    return float(np.sqrt(max(gap @ L @ gap, 0.0)))


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(-2, 0.5, 150), rng.normal(1, 1.0, 150)])[:, None]
    w = rng.uniform(0, 1, 300)
    return y, Gaussian(lengthscale=0.7)(y), w / w.sum()


def test_equals_a_naive_double_loop():
    rng = np.random.default_rng(1)
    L = Gaussian()(rng.normal(size=(12, 2)))
    W = rng.normal(0.1, 0.2, (4, 12))  # negative weights too
    picks = herd(torch.from_numpy(L), torch.from_numpy(W), 9)
    assert picks.tolist() == [naive_herd(L, w, 9) for w in W]


def test_one_row_gives_a_vector_and_equals_the_row_of_a_batch(problem):
    _, L, w = problem
    W = torch.from_numpy(np.stack([w, w[::-1].copy()]))
    batch = herd(torch.from_numpy(L), W, 30)
    assert batch.shape == (2, 30)
    for row, picks in zip(W, batch, strict=True):
        one = herd(torch.from_numpy(L), row, 30)
        assert one.shape == (30,)
        assert torch.equal(one, picks)


def test_first_pick_is_the_mode(problem):
    _, L, w = problem
    assert int(herd(torch.from_numpy(L), torch.from_numpy(w), 1)[0]) == int((L @ w).argmax())


def test_a_smaller_sample_is_the_beginning_of_a_larger_one(problem):
    _, L, w = problem
    L, w = torch.from_numpy(L), torch.from_numpy(w)
    assert torch.equal(herd(L, w, 7), herd(L, w, 25)[:7])


def test_each_pick_is_the_best_next_one_where_the_diagonal_is_constant(problem):
    _, L, w = problem
    picks = herd(torch.from_numpy(L), torch.from_numpy(w), 12).tolist()
    for t in range(1, 13):
        best = min(mmd(L, w, [*picks[: t - 1], y]) for y in range(len(L)))
        assert mmd(L, w, picks[:t]) == pytest.approx(best, abs=1e-9)


def test_discrepancy_falls_like_one_over_t_and_beats_random_draws(problem):
    _, L, w = problem
    picks = herd(torch.from_numpy(L), torch.from_numpy(w), 256).numpy()
    sizes = np.array([4, 8, 16, 32, 64, 128, 256])
    herded = np.array([mmd(L, w, picks[:t]) for t in sizes])
    rng = np.random.default_rng(2)
    random = np.array([np.mean([mmd(L, w, rng.choice(len(w), t, p=w)) for _ in range(20)]) for t in sizes])
    slope = np.polyfit(np.log(sizes), np.log(herded), 1)[0]
    assert slope < -0.8  # random draws: -0.5
    assert np.polyfit(np.log(sizes), np.log(random), 1)[0] > -0.6
    assert (herded < 0.6 * random).all()
    assert herded[-1] < 0.15 * random[-1]


def test_between_labels_it_is_a_fair_share():
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    counts = herd(torch.eye(3, dtype=torch.float64), p, 100).bincount()
    assert counts.tolist() == [50, 30, 20]


def test_ties_go_to_the_first_candidate_whatever_the_rounding():
    L = torch.eye(4, dtype=torch.float64)
    w = torch.tensor([0.25, 0.25 + 1e-16, 0.25, 0.25 + 5e-17], dtype=torch.float64)
    assert herd(L, w, 8).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


def test_without_replacement_every_candidate_comes_once(problem):
    _, L, w = problem
    L, w = torch.from_numpy(L[:20, :20].copy()), torch.from_numpy(w[:20].copy())
    picks = herd(L, torch.stack([w, -w]), 20, replace=False)
    assert picks.sort(1).values.tolist() == [list(range(20))] * 2


def test_inputs_are_not_changed(problem):
    _, L, w = problem
    L, w = torch.from_numpy(L), torch.from_numpy(w)
    L_before, w_before = L.clone(), w.clone()
    herd(L, w, 5, replace=False)
    assert torch.equal(L, L_before)
    assert torch.equal(w, w_before)


def test_errors_are_sentences():
    L = torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match="a weight for each of its rows"):
        herd(L, torch.ones(4), 2)
    with pytest.raises(ValueError, match="square kernel matrix"):
        herd(L[:2], torch.ones(3), 2)
    with pytest.raises(ValueError, match="Cannot pick 0 of 3"):
        herd(L, torch.ones(3), 0)
    with pytest.raises(ValueError, match="Cannot pick 4 of 3 candidates without replacement"):
        herd(L, torch.ones(3), 4, replace=False)
