"""Extend a similarity that is known for some objects to all others.

    python examples/similarity_extension.py                # handwritten digits: distances along their manifold
    python examples/similarity_extension.py --data splice  # DNA: alignment scores (needs the data set "splice")

Similarities are known for part of the objects, from a source that is slow or no longer available: here the length of
the shortest path through near neighbours (digits), or the score of an alignment (strings). Neither is a kernel of the
objects' features. A kernel function is learned from the known matrix and predicts the other similarities. For
comparison, the script also uses the similarities of the nearest known object.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from kernelwright import HyperKernelRidge, datasets


def digits(n: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Return pixels, and minus the geodesic distance through a graph of eight neighbours."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:n]
    X = X[order[np.argsort(y[order], kind="stable")]] / 16.0
    graph = kneighbors_graph(X, 8, mode="distance")
    distance = shortest_path(graph.maximum(graph.T), directed=False)
    distance[np.isinf(distance)] = distance[np.isfinite(distance)].max()
    return X, -distance, "minus the geodesic distance between digits"


def splice(n: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Return letters as one-hot features, and the score of the best global alignment of two strings."""
    strings, y = datasets.load("splice")
    order = np.random.default_rng(0).permutation(len(strings))[:n]
    order = order[np.argsort(y[order], kind="stable")]
    letters = np.array([list(s) for s in np.asarray(strings)[order]])
    X = (letters[:, :, None] == np.array(list("ACGT"))).reshape(len(letters), -1).astype(float)
    return X, alignment_scores(letters), "score of the alignment of two DNA strings"


def alignment_scores(letters: np.ndarray, match: float = 1.0, mismatch: float = -1.0, gap: float = -1.5) -> np.ndarray:
    """Compute the Needleman-Wunsch scores of all pairs, cell by cell for all pairs at once."""
    n, length = letters.shape
    above = np.broadcast_to(gap * np.arange(length + 1.0), (n, n, length + 1)).copy()
    for i in range(length):
        row = np.empty_like(above)
        row[:, :, 0] = gap * (i + 1)
        same = np.where(letters[:, None, i, None] == letters[None, :, :], match, mismatch)
        for j in range(length):
            diagonal = above[:, :, j] + same[:, :, j]
            row[:, :, j + 1] = np.maximum(diagonal, gap + np.maximum(above[:, :, j + 1], row[:, :, j]))
        above = row
    return above[:, :, -1]


def relative_error(K: np.ndarray, target: np.ndarray) -> float:
    """Return the root mean squared error, relative to the standard deviation of the target: 1 for a constant."""
    return float(np.sqrt(np.mean((K - target) ** 2)) / target.std())


def draw(target: np.ndarray, learned: np.ndarray, path: Path, title: str) -> None:
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    given, ours, points = figure.subplots(1, 3)
    low, high = target.min(), target.max()
    for ax, K, name in ((given, target, "true, between new objects"), (ours, learned, "learned")):
        image = ax.imshow(K, vmin=low, vmax=high, cmap="viridis")
        ax.set(title=name, xticks=[], yticks=[])
    figure.colorbar(image, ax=ours)
    some = np.random.default_rng(0).choice(target.size, min(target.size, 4000), replace=False)
    points.scatter(target.ravel()[some], learned.ravel()[some], s=3, alpha=0.4)
    points.plot([low, high], [low, high], color="black", linewidth=1)
    points.set(xlabel="true", ylabel="learned", title="pairs of new objects")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def main(data: str, n: int, share: float, output: Path) -> dict[str, float]:
    X, similarity, title = {"digits": digits, "splice": splice}[data](n)
    known = np.random.default_rng(1).random(len(X)) < share
    old, new = X[known], X[~known]
    target = similarity[~known][:, ~known]

    started = time.perf_counter()
    model = HyperKernelRidge(random_state=0).fit(old, similarity[known][:, known])
    seconds = time.perf_counter() - started
    learned = model.predict(new)

    _, nearest = NearestNeighbors(n_neighbors=1).fit(old).kneighbors(new)
    copied = similarity[known][:, known][nearest[:, 0]][:, nearest[:, 0]]
    errors = {"learned kernel": relative_error(learned, target), "nearest known object": relative_error(copied, target)}

    print(f"{title}: known between {len(old)} objects, wanted between {len(new)} new ones")
    print(f"learned in {seconds:.1f} s, {model.kernel_}; on the known objects: {model.kernel_.signature(old)}")
    for name, error in errors.items():
        print(f"  {name:<22} error {error:.3f} of the standard deviation, {1 - error**2:.1%} of the variance explained")
    draw(target, learned, output, title)
    print(f"Picture: {output}")
    return errors


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=("digits", "splice"), default="digits")
    parser.add_argument("--objects", type=int, default=800)
    parser.add_argument("--known", type=float, default=0.6, help="share of the objects whose similarities are known")
    parser.add_argument("--output", type=Path, default=Path("similarity-extension.png"))
    arguments = parser.parse_args()
    main(arguments.data, arguments.objects, arguments.known, arguments.output)
