"""A torch module as a feature map."""

import numpy as np
import pytest
import torch
from torch import nn

from kernelwright.features import Network

X = np.random.default_rng(0).normal(size=(40, 4))


def module() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Tanh())


def test_features_are_the_outputs_of_the_module_without_dropout():
    given = module()
    features = Network(given)
    expected = given.eval().double()(torch.from_numpy(X)).detach()
    np.testing.assert_allclose(features(X), expected, rtol=1e-12)


def test_the_given_module_is_not_changed():
    given = module()
    before = {name: value.clone() for name, value in given.state_dict().items()}
    features = Network(given).fit(X)
    with torch.no_grad():
        for parameter in features.parameters():
            parameter.add_(1.0)
    assert given.training
    for name, value in given.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, before[name])


def test_the_number_of_features_is_known_once_inputs_are_seen():
    features = Network(module())
    with pytest.raises(ValueError, match="known once it has seen inputs"):
        _ = features.n_features
    assert features.fit(X).n_features == 6
