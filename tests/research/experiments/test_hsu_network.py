from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright import datasets
from kernelwright.embedding import TrainingSet
from kernelwright.networks.heads import BatchObjective
from kernelwright.objectives import RademacherObjective
from kernelwright.research.experiments import hsu_network, hsu_network_full
from kernelwright.research.experiments.runner import Result, run

EPOCHS = 8


@pytest.fixture
def digits_at_random(monkeypatch):
    """Return images of MNIST's size with a bright square whose position gives the class; few are ever read."""
    y = np.arange(70000) % 10
    X = np.zeros((70000, 28, 28), dtype=np.uint8)
    for label in range(10):
        row, column = divmod(label, 4)
        X[y == label, 9 * row : 9 * row + 6, 7 * column : 7 * column + 6] = 200
    monkeypatch.setattr(datasets, "load", lambda name: (X.reshape(70000, 784), y))


def test_both_heads_learn_and_a_run_can_be_repeated(digits_at_random):
    small = replace(hsu_network.QUICK, n_train=200, n_test=100, channels=(2, 4), n_features=16, epochs=EPOCHS)
    small = replace(small, batch_size=50, learning_rate=0.01)
    told = []
    before = torch.get_rng_state()
    curves = hsu_network.run(small, progress=lambda name, accuracy: told.append((name, accuracy)))
    assert torch.equal(torch.get_rng_state(), before)
    assert [name for name, _ in told] == ["embedding"] * EPOCHS + ["softmax"] * EPOCHS
    assert [accuracy for _, accuracy in told] == curves.embedding + curves.softmax
    assert min(curves.embedding[-1], curves.softmax[-1]) > 70
    assert hsu_network.run(small) == curves


def test_full_protocol_is_the_published_one():
    full = hsu_network.FULL
    assert (full.n_train, full.batch_size, full.epochs, full.learning_rate) == (60000, 6000, 800, 0.01)
    net = hsu_network.cnn(full.channels, full.n_features, full.deviation)
    assert (net[0].bias == full.deviation).all()
    assert net[7].weight.abs().max().item() <= 0.2 + 1e-6  # single precision


def test_a_run_at_the_published_size_resumes_where_it_was_stopped(digits_at_random, tmp_path, monkeypatch):
    tiny = replace(hsu_network_full.SMALL, n_train=100, n_test=50, batch_size=50)
    monkeypatch.setattr(hsu_network_full, "SMALL", tiny)
    experiment = hsu_network_full.EXPERIMENT
    whole = run(experiment, tmp_path / "whole", quick=True, jobs=2)
    first = replace(experiment, tasks=lambda quick: experiment.tasks(quick)[:2])
    assert len(run(first, tmp_path / "parts", quick=True)) == 6
    resumed = run(experiment, tmp_path / "parts", quick=True)
    assert [r.value for r in whole if r.measure == "accuracy"] == [r.value for r in resumed if r.measure == "accuracy"]
    assert [(r.row, r.column) for r in resumed[::3]] == [
        (f"epoch {n}", head) for n in (1, 2) for head in hsu_network.HEADS
    ]
    assert hsu_network_full.ahead(resumed).holds is None  # whichever is ahead
    said = hsu_network_full.pace(resumed)
    assert len(said) == 2
    assert "embedding: 2 of 800 epochs are done" in said[0]
    (tmp_path / "whole" / f"network-100-{hsu_network.HEADS[0]}.pt").write_bytes(b"torn")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        hsu_network_full.epoch_trial(tmp_path / "whole", tiny, hsu_network.HEADS[0], 3)


def test_ahead_at_the_published_size_needs_all_epochs():
    def results(ours, theirs, epochs):
        values = {"embedding": ours, "softmax": theirs}
        return [Result(f"epoch {n}", head, 0, "accuracy", values[head]) for n in range(epochs) for head in values]

    assert hsu_network_full.ahead(results(2.0, 1.0, 800)).holds
    assert hsu_network_full.ahead(results(2.0, 1.0, 799)).holds is None
    assert hsu_network_full.ahead(results(1.0, 2.0, 1)).holds is False
    assert hsu_network_full.ahead([]).holds is None


def test_softmax_head_is_the_cross_entropy():
    head = hsu_network.SoftmaxHead(4, 3)
    Z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    data = TrainingSet.of(Z.detach(), torch.eye(3, dtype=torch.float64)[[0, 1, 2, 0, 1, 2]])
    parts = head.backward(Z, data, BatchObjective(RademacherObjective(), tau=0.0))
    p = torch.softmax(head.linear(Z), 1).detach()
    assert parts.value == pytest.approx(float(-p[range(6), [0, 1, 2, 0, 1, 2]].log().mean()))
    np.testing.assert_allclose(Z.grad, (p - data.targets.float()) @ head.linear.weight.detach() / 6, atol=1e-6)


def test_ahead_means_after_every_epoch():
    assert hsu_network.Curves([2.0, 3.0], [1.0, 2.0]).ahead
    assert not hsu_network.Curves([2.0, 3.0], [2.0, 2.0]).ahead
