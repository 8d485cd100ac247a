"""Classify small images in three ways: pixels as a table, a kernel on pixels, a network with an embedding on top.

    python examples/images.py

The images are the 8 x 8 digits of scikit-learn. Few of them are used for training, as is often the case.
"""

import argparse
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from torch import nn

from kernelwright import EmbeddingClassifier, EmbeddingNetworkClassifier
from kernelwright.kernels import Gaussian
from kernelwright.networks import Training
from kernelwright.uncertainty.scores import expected_calibration_error


def network() -> nn.Sequential:
    """Return two convolutional layers whose outputs are 64 features, not classes."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 64),
        nn.ReLU(),
    )


def main(n_train: int = 600, epochs: int = 150) -> dict[str, dict[str, float]]:
    images, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, y = images[order].reshape(-1, 1, 8, 8) / 16.0, y[order]
    pixels = images.reshape(len(images), -1)

    torch.manual_seed(0)  # where the network starts
    methods = {
        "table of pixels": (EmbeddingClassifier(random_state=0), pixels),
        "Gaussian kernel on pixels": (EmbeddingClassifier(Gaussian("median"), random_state=0), pixels),
        "convolutional network": (
            EmbeddingNetworkClassifier(network(), training=Training(max_epochs=epochs), random_state=0),
            images,
        ),
    }
    scores = {}
    print(f"{n_train} digits to train on, {len(y) - n_train} to test on\n")
    print(f"{'':<28}accuracy  log loss  calibration error  seconds")
    for name, (model, X) in methods.items():
        started = time.perf_counter()
        model.fit(X[:n_train], y[:n_train])
        seconds = time.perf_counter() - started
        p, truth = model.predict_proba(X[n_train:]), y[n_train:]
        scores[name] = {
            "accuracy": float((p.argmax(1) == truth).mean()),
            "log loss": log_loss(truth, p),
            "calibration error": expected_calibration_error(p, truth),
        }
        print(f"{name:<28}" + "{accuracy:8.1%}{log loss:10.3f}{calibration error:19.3f}".format(**scores[name]), end="")
        print(f"{seconds:9.1f}")

    noise = np.random.default_rng(1).random((200, 1, 8, 8))
    for name, (model, X) in methods.items():
        sure = model.predict_proba(noise.reshape(200, *X.shape[1:])).max(1)
        scores[name]["sure of noise"] = float(np.median(sure))
        print(f"Pure noise: {name} has a confidence of {np.median(sure):.0%} (median)")
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=600, help="to learn from, of 1797")
    parser.add_argument("--epochs", type=int, default=150)
    arguments = parser.parse_args()
    main(arguments.images, arguments.epochs)
