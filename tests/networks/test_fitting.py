"""The steps of a network's fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from kernelwright import learning
from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian
from kernelwright.networks import MLP, HeadOptions, Training
from kernelwright.networks.fitting import NetworkPlan, checkpoint_for, split, start
from kernelwright.networks.training import seeded

X = np.random.default_rng(0).normal(size=(160, 2))
Y = np.arange(160) % 2


def rows(groups=None):
    named = None if groups is None else torch.from_numpy(groups)
    return TrainingSet.of(torch.from_numpy(X), one_hot(Y, 2), groups=named)


def plan(module=None, **settings):
    usual = {"kernel": None, "method": None, "head": HeadOptions(), "training": Training()}
    usual |= {"scale": None, "flat": True, "random_state": 0}
    return NetworkPlan(module or MLP((6,)), **usual | settings)


def test_groups_are_held_out_as_a_whole():
    groups = np.random.default_rng(1).permutation(np.arange(160) // 5)
    parts = split(rows(groups), Training(early_stopping=0.3))
    assert parts.held_out
    assert not set(groups[parts.learned]) & set(groups[parts.judged])
    assert len(parts.learned) + len(parts.judged) == len(Y)
    assert len(set(groups[parts.judged])) == round(0.3 * 32)


def test_without_held_out_rows_all_are_learned_and_judged():
    parts = split(rows(), Training())
    assert not parts.held_out
    assert torch.equal(parts.learned, torch.arange(160))
    assert torch.equal(parts.judged, torch.arange(160))


def test_the_ridge_starts_on_the_scale_of_the_features():
    with seeded(0):
        started = start(plan(), rows())
    Z = started.network.features(torch.from_numpy(X))
    assert float(started.network.head.ridge.detach()) == pytest.approx(0.01 * float(Z.square().mean()))
    assert (started.n_features, started.width) == (6, 7)
    for asked, ridge in ((HeadOptions(ridge=0.3), 0.3), (HeadOptions(ridge=0.3, intercept=False), 0.3)):
        assert float(start(plan(head=asked), rows()).network.head.ridge.detach()) == pytest.approx(ridge)
    assert float(start(plan(kernel=Gaussian()), rows()).network.head.ridge.detach()) == pytest.approx(0.01)
    assert float(start(plan(warm_ridge=0.7), rows()).network.head.ridge.detach()) == pytest.approx(0.7)


def test_a_given_network_and_kernel_are_copied():
    module, kernel = nn.Linear(2, 3), Gaussian("median")
    started = start(plan(module, kernel=kernel), rows())
    assert started.network.module is not module
    assert torch.equal(started.network.module.weight, module.weight)
    assert started.network.head.kernel is not kernel
    assert kernel.median  # the copy was prepared


def test_a_run_is_known_by_all_that_decides_it(tmp_path):
    def job(plan, data=None):
        training = Training(**plan.training.get_params() | {"checkpoint": tmp_path / "run"})
        return checkpoint_for(replace(plan, training=training), data or rows(), 0)[0].job

    module = nn.Linear(2, 3)
    other = nn.Linear(2, 3)
    jobs = [
        job(plan()),
        job(plan(MLP((7,)))),
        job(plan(module)),
        job(plan(other)),
        job(plan(kernel=Gaussian(1.0))),
        job(plan(kernel=Gaussian(2.0))),
        job(plan(method=learning.Rademacher())),
        job(plan(method=learning.Rademacher(0.0))),
        job(plan(method=learning.HeldOut("4e/n"))),
        job(plan(head=HeadOptions(sup=2.0))),
        job(plan(training=Training(learning_rate=0.02))),
        job(plan(random_state=1)),
        job(plan(), rows(np.arange(160) // 2)),
    ]
    assert len(set(jobs)) == len(jobs)
    assert job(plan()) == jobs[0]
    assert checkpoint_for(plan(), rows(), 3) == (None, 3)
