"""Fully connected networks and bounds on their outputs."""

import math

import pytest
import torch
from torch import nn

from kernelwright.networks.modules import checked_widths, known_bound, mlp


def test_he_initialisation_leaves_global_randomness_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, second = (mlp(50, (400, 30), generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first[0].weight, second[0].weight)
    assert float(first[0].weight.detach().std()) == pytest.approx(math.sqrt(2 / 50), rel=0.05)
    assert not first[0].bias.any()


def test_known_bounds_of_networks():
    assert known_bound(mlp(3, (4, 7), activation="tanh", dropout=0.5), 7) == 7
    assert known_bound(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Softmax(1), nn.Flatten())), 3) == 1
    assert known_bound(nn.ReLU6(), 2) == 72
    for unbounded in (mlp(3, (4,)), nn.Sequential(), nn.Linear(2, 2)):
        with pytest.raises(ValueError, match="ends in a bounded activation"):
            known_bound(unbounded, 4)


def test_widths_are_whole_numbers_of_at_least_one():
    assert checked_widths((8.0, 3), "MLP") == [8, 3]
    for wrong in ((), (4, 0)):
        with pytest.raises(ValueError, match="'hidden' parameter of MLP must be one or more widths"):
            checked_widths(wrong, "MLP")
