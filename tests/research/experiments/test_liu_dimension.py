"""The size of a hyper-RKHS: the curves against naive formulas at all pairs."""

import numpy as np
import pytest
from sklearn.preprocessing import minmax_scale

from kernelwright import datasets
from kernelwright.hyperkernels import Gaussian
from kernelwright.research.experiments import liu_dimension as experiment
from kernelwright.research.experiments.runner import Result


def test_curves_are_those_of_all_pairs(data_folder, monkeypatch):
    monkeypatch.setattr(experiment, "POINTS", 8)
    found = experiment.trial("heart", "hyper-kernel, Gaussian", 3)
    X, _ = datasets.load("heart")
    X = minmax_scale(X)[np.random.default_rng(3).permutation(len(X))[:8]]
    width = np.sqrt(X.var(0).sum())
    first, second = np.indices((8, 8)).reshape(2, -1)
    pairs = X[first], X[second]
    K = Gaussian(sigma=width, sigma_h=width)(pairs, pairs)
    K /= np.mean(np.diag(K))
    expected = np.trace(K @ np.linalg.inv(K + 64 * 0.01 * np.eye(64)))
    assert found["dimension at lambda 0.01"] == pytest.approx(expected, rel=1e-6)
    axes = np.sqrt(np.linalg.eigvalsh(K).clip(0.0) / 64)
    assert found["lower log covering at eps 0.1"] == pytest.approx(sum(np.log(axes[axes > 0.1] / 0.1)))


def test_the_figure_has_both_curves(data_folder, monkeypatch):
    monkeypatch.setattr(experiment, "POINTS", 8)
    results: list[Result] = [each for task in experiment.tasks(True) for each in task()]
    ridges, dimensions = experiment.curves_of(results, "heart", experiment.KERNELS[1], experiment.DIMENSION)
    assert len(ridges) == len(experiment.RIDGES)
    assert (np.diff(dimensions) > 0).all()  # a smaller ridge leaves more parameters
    lower, upper = (
        experiment.curves_of(results, "heart", experiment.KERNELS[2], curve)[1]
        for curve in (experiment.LOWER, experiment.UPPER)
    )
    assert (lower <= upper).all()
    assert experiment.pictures(results)["liu-dimension"].png.startswith(b"\x89PNG")
