"""Cells of the page on the first paper, recomputed with plain formulas: nothing of the library but the data."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import minmax_scale

from kernelwright import datasets
from kernelwright.networks.checkpoint import Checkpoint
from kernelwright.research.experiments import hsu_network, hsu_theory
from kernelwright.research.experiments.hsu_network_full import SMALL
from kernelwright.research.experiments.runner import read_results

RESULTS = Path(__file__).parents[3] / "docs" / "reproduction"
pytestmark = pytest.mark.usefixtures("data_folder")


def on_the_page(name, row, column, measure="accuracy"):
    """Return the numbers of a cell by trial."""
    found = read_results(RESULTS / f"{name}.csv")
    return {r.trial: r.value for r in found if (r.row, r.column, r.measure) == (row, column, measure)}


def gaussian(X, Z, lengthscales):
    return np.exp(-0.5 * cdist(X / lengthscales, Z / lengthscales, "sqeuclidean"))


def accuracy(X, y, X_test, y_test, lengthscales, ridge):
    """Fit Eq. (5) and return the accuracy in percent."""
    Y = np.eye(y.max() + 1)[y]
    V = np.linalg.solve(gaussian(X, X, lengthscales) + len(X) * ridge * np.eye(len(X)), Y)
    return 100.0 * float(((gaussian(X_test, X, lengthscales) @ V).argmax(1) == y_test).mean())


def learn(X, y, lengthscales, ridge, rate, steps, *, tau=4 * math.e, sensitivity=None):
    """Minimise the sum of the losses and tau times the complexity by Adam and autograd, as Algorithm 1 says."""
    X, Y = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64)), torch.eye(int(y.max()) + 1).double()[y]
    logs = [torch.tensor(np.log(v), dtype=torch.float64, requires_grad=True) for v in (lengthscales, ridge)]
    if sensitivity is not None:
        logs.append(torch.tensor(math.log(sensitivity), dtype=torch.float64, requires_grad=True))
    optimiser = torch.optim.Adam(logs, lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        Z = X / logs[0].exp()
        squares = (Z * Z).sum(1)
        K = torch.exp(-0.5 * (squares[:, None] + squares[None] - 2.0 * Z @ Z.T))
        alpha2 = logs[2].exp() if sensitivity is not None else torch.tensor(1.0, dtype=torch.float64)
        K = alpha2 * K
        V = torch.linalg.solve(K + len(X) * logs[1].exp() * torch.eye(len(X), dtype=torch.float64), Y)
        P = K @ V
        loss = -torch.log((P * Y).sum(1).clamp(1e-15, 1.0)).sum()
        (loss + tau * torch.sqrt(alpha2 * (V * P).sum())).backward()
        optimiser.step()
    scaled = logs[1] - (logs[2] if sensitivity is not None else 0.0)  # K / alpha^2 with lambda / alpha^2: the same f
    return logs[0].detach().exp().numpy(), float(scaled.detach().exp())


def folds(name, shuffled):
    X, y = datasets.load(name)
    splits = KFold(10, shuffle=True, random_state=0) if shuffled else KFold(10)
    return minmax_scale(X), y, enumerate(splits.split(X))


def lower_median(values):
    return np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2]


@pytest.mark.parametrize("name", ["wine", "ecoli"])
def test_table_1_median_heuristic(name):
    page = on_the_page("hsu-table1", name, "MED")
    X, y, splits = folds(name, shuffled=True)
    for fold, (train, test) in splits:
        pairs = cdist(X[train], X[train])[np.triu_indices(len(train), 1)]
        median = np.full(X.shape[1], lower_median(pairs))
        assert accuracy(X[train], y[train], X[test], y[test], median, 1.0) == pytest.approx(page[fold]), fold
    assert len(page) == 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wine", "ecoli"])
def test_table_1_learned_with_the_bound(name):
    page = on_the_page("hsu-table1", name, "GMCE")
    X, y, splits = folds(name, shuffled=True)
    for fold, (train, test) in list(splits)[:2]:
        lengthscales, ridge = learn(X[train], y[train], np.ones(X.shape[1]), 1.0, 0.1, 1000)
        found = accuracy(X[train], y[train], X[test], y[test], lengthscales, ridge)
        assert found == pytest.approx(page[fold], abs=100.1 / len(test))  # at most one row of a thousand steps


@pytest.mark.parametrize("name", ["wine", pytest.param("banknote", marks=pytest.mark.slow)])
def test_rivals_in_file_order_are_as_published(name):
    page = on_the_page("hsu-table1-order", name, "MED of each attribute")
    X, y, splits = folds(name, shuffled=False)
    found = []
    for fold, (train, test) in splits:
        medians = np.array([np.median(np.abs(a[:, None] - a)[np.triu_indices(len(a), 1)]) for a in X[train].T])
        found.append(accuracy(X[train], y[train], X[test], y[test], medians, 1.0))
        assert found[-1] == pytest.approx(page[fold])
    published = {"wine": (93.3, 7.8), "banknote": (92.0, 4.3)}[name]
    assert (round(np.mean(found), 1), round(np.std(found), 1)) == published


def iris(seed):
    X, y = datasets.load("iris")
    return train_test_split(minmax_scale(X[:, :2]), y, test_size=0.2, random_state=seed)


@pytest.mark.parametrize(("start", "lengthscale", "ridge"), [("overfitting", 0.1, 1e-4), ("underfitting", 1.0, 1.0)])
def test_figure_1_at_the_start(start, lengthscale, ridge):
    page = on_the_page("hsu-figure1", start, "start")
    for seed in range(10):
        X, X_test, y, y_test = iris(seed)
        assert accuracy(X, y, X_test, y_test, np.full(2, lengthscale), ridge) == pytest.approx(page[seed])


@pytest.mark.slow
@pytest.mark.parametrize(("start", "lengthscale", "ridge"), [("overfitting", 0.1, 1e-4), ("underfitting", 1.0, 1.0)])
def test_figure_1_after_learning(start, lengthscale, ridge):
    page = on_the_page("hsu-figure1", start, "step 500")
    for seed in range(2):
        X, X_test, y, y_test = iris(seed)
        learned = learn(X, y, np.array([lengthscale]), ridge, 0.01, 500, sensitivity=1.0)
        found = accuracy(X, y, X_test, y_test, *learned)
        assert found == pytest.approx(page[seed], abs=100.1 / len(y_test))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "tau"), [("with the bound, from ones", 4 * math.e), ("without, from ones", 0.0)])
def test_figure_2_by_size_from_the_published_start(method, tau):
    page = on_the_page("hsu-figure2-size", "n = 50", method)
    X, y = datasets.load("mnist")
    X = X.reshape(len(X), -1) / 255.0
    rows = np.random.default_rng(0).permutation(60_000)[:50]
    lengthscales, ridge = learn(X[rows], y[rows], np.ones(784), 1.0, 0.1, 300, tau=tau)
    found = accuracy(X[rows], y[rows], X[60_000:], y[60_000:], lengthscales, ridge)
    # Pixels that hardly vary in 50 images have gradients near rounding, whose size Adam does not see.
    assert found == pytest.approx(page[0], abs=3.0)


def test_theory_at_the_smallest_size():
    page = on_the_page("hsu-theory", "n = 50", "MCE", "error of probabilities")
    x = np.linspace(-1.0, 1.0, 6)[:, None]
    scores = np.exp(np.stack([5 * np.sin(3 * x[:, 0]), 2 * np.cos(2 * x[:, 0]), 0 * x[:, 0]], axis=1))
    p = scores / scores.sum(1)[:, None]
    np.testing.assert_allclose(hsu_theory.probabilities(), p)
    for seed in range(10):
        random = np.random.default_rng(1000 * seed + 50)
        places = random.integers(6, size=50)
        Y = np.eye(3)[[random.choice(3, p=p[place]) for place in places]]
        K = gaussian(x[places], x[places], 0.4)
        f = gaussian(x, x[places], 0.4) @ np.linalg.solve(K + 50**0.5 * np.eye(50), Y)
        assert page[seed] == pytest.approx(np.abs(f - p).max())


@pytest.mark.slow
def test_the_gradient_of_the_network_as_printed(tmp_path):
    """Compare the gradient of Eq. (12), 4e |W| on the mean loss, with autograd through a plain solve."""
    protocol = replace(SMALL, n_train=200, batch_size=200, epochs=1)
    start = hsu_network.start_of(protocol, 0)
    checkpoint = Checkpoint(tmp_path / "one.pt", "one step", 0)
    trained = start.network("embedding")
    hsu_network.train(trained, start, 1, checkpoint=checkpoint)
    names = [name for name, parameter in trained.named_parameters() if parameter.requires_grad]
    moments = checkpoint.read()["optimiser"]["state"]
    found = {name: moments[i]["exp_avg"] / 0.1 for i, name in enumerate(names)}  # Adam's mean after one step
    module, X, Y = start.network("embedding").module.train(), start.data.points.float(), start.data.targets
    log_ridge = torch.tensor(math.log(10.0), dtype=torch.float64, requires_grad=True)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        Z = module(X).double()
    S = Z.T @ Z + 200 * log_ridge.exp() * torch.eye(Z.shape[1], dtype=torch.float64)
    W = torch.linalg.solve(S, Z.T @ Y)
    loss = -torch.log(((Z @ W) * Y).sum(1).clamp(1e-15, 1.0)).mean()
    (loss + 4 * math.e * W.norm()).backward()
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(found[f"module.{name}"].numpy(), parameter.grad.numpy(), atol=2e-6, rtol=1e-4)
    assert float(found["head.log_ridge"]) == pytest.approx(float(log_ridge.grad), rel=1e-4)
