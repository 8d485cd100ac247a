"""Train a convolutional network with an embedding in place of its softmax layer, on MNIST.

    python examples/mnist_network.py            # minutes on two cores
    python examples/mnist_network.py --full     # the published sizes: 60,000 images, 800 epochs (days without a GPU)

Both networks start from the same weights and see the same mini-batches. The first part compares them epoch by epoch;
the second shows normal use: it passes the network to ``EmbeddingNetworkClassifier``. ``kernelwright.datasets.load``
says where the images are looked for.
"""

import argparse
from pathlib import Path

import torch

from kernelwright import EmbeddingNetworkClassifier, datasets
from kernelwright.networks import Training
from kernelwright.research.experiments import hsu_network
from kernelwright.uncertainty.scores import expected_calibration_error


def compare(protocol: hsu_network.Protocol, output: Path) -> None:
    curves = hsu_network.run(protocol, progress=lambda name, accuracy: print(f"{name:>10}  {accuracy:.2f} %"))
    print("\nepoch  embedding  softmax")
    for epoch, (ours, theirs) in enumerate(zip(curves.embedding, curves.softmax, strict=True), start=1):
        print(f"{epoch:5d}  {ours:9.2f}  {theirs:7.2f}")
    output.write_bytes(hsu_network.picture(curves).png)
    print(f"Picture: {output}")


def classify(n_train: int, n_test: int = 10000, epochs: int = 8) -> float:
    X, y = datasets.load("mnist")
    train, test = slice(0, n_train), slice(60000, 60000 + n_test)
    images, new = (X[rows].reshape(-1, 1, 28, 28) / 255.0 for rows in (train, test))
    torch.manual_seed(0)  # the start of the network below
    module = hsu_network.cnn((8, 16), 128)
    training = Training(max_epochs=epochs, learning_rate=0.003)
    model = EmbeddingNetworkClassifier(module, training=training, random_state=0, verbose=1)
    model.fit(images, y[train])
    p = model.predict_proba(new)
    right = float((model.classes_[p.argmax(1)] == y[test]).mean())
    print(f"EmbeddingNetworkClassifier on {n_train} images: test accuracy {right:.2%}, ", end="")
    print(f"calibration error {expected_calibration_error(p, y[test]):.3f}")
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the published sizes")
    parser.add_argument("--output", type=Path, default=Path("mnist-network.png"), help="where the picture goes")
    arguments = parser.parse_args()
    compare(hsu_network.FULL if arguments.full else hsu_network.QUICK, arguments.output)
    classify(60000 if arguments.full else 6000)
