"""The example runs, on small digits that are enlarged to the size of MNIST's images."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from kernelwright import datasets
from kernelwright.research.experiments import hsu_network
from tests.examples.loading import load


@pytest.fixture
def small_digits(monkeypatch):
    images, y = load_digits(return_X_y=True)
    large = np.kron(images.reshape(-1, 8, 8), np.ones((3, 3)))
    large = np.pad(large, ((0, 0), (2, 2), (2, 2))).reshape(len(y), 784)
    large = (large * 255.0 / 16.0).astype(np.uint8)
    # Of the rows in the place of training images none is among those in the place of test images.
    numbers = np.concatenate([np.arange(60000) % 1200, 1200 + np.arange(10000) % 597])
    monkeypatch.setattr(datasets, "load", lambda name: (large[numbers], y[numbers]))


def test_both_parts(small_digits, tmp_path, capsys):
    example = load("mnist_network")
    example.compare(hsu_network.Protocol(300, 200, (4, 8), 32, 100, 2, 0.003, None, 1e-4), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert example.classify(500, 300, epochs=6) > 0.8
    shown = capsys.readouterr().out
    assert "epoch  embedding  softmax" in shown
    assert "calibration error" in shown
