"""A convolutional network with an embedding in place of its softmax layer, on MNIST.

    python examples/mnist_network.py            # minutes on two cores
    python examples/mnist_network.py --full     # the published sizes: 60,000 images, 800 epochs (days without a GPU)

Both networks start from the same weights and see the same batches. The first part compares them epoch by epoch; the
second does what a user would do: hand the network to ``EmbeddingNetworkClassifier``. The images are looked for as
``kernelwright.datasets.load`` describes.
"""

import argparse
from pathlib import Path

import torch

from kernelwright import EmbeddingNetworkClassifier, datasets
from kernelwright.calibration import expected_calibration_error
from kernelwright.experiments import mnist_network


def compare(protocol: mnist_network.Protocol, output: Path) -> None:
    curves = mnist_network.run(protocol, progress=lambda name, accuracy: print(f"{name:>10}  {accuracy:.2f} %"))
    print("\nepoch  embedding  softmax")
    for row in mnist_network.rows_of(curves):
        print(f"{row['epoch']:>5}  {row['embedding']:>9}  {row['softmax']:>7}")
    output.write_bytes(mnist_network.picture(curves).png)
    print(f"Picture: {output}")


def classify(n_train: int, n_test: int = 10000, epochs: int = 8) -> float:
    X, y = datasets.load("mnist")
    train, test = slice(0, n_train), slice(60000, 60000 + n_test)
    images, new = (X[rows].reshape(-1, 1, 28, 28) / 255.0 for rows in (train, test))
    torch.manual_seed(0)  # the start of the network below
    module = mnist_network.cnn((8, 16), 128)
    model = EmbeddingNetworkClassifier(module, max_epochs=epochs, learning_rate=0.003, random_state=0, verbose=1)
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
    compare(mnist_network.FULL if arguments.full else mnist_network.QUICK, arguments.output)
    classify(60000 if arguments.full else 6000)
