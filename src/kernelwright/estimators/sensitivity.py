"""How much the outputs of a fitted embedding change when a column is permuted among its points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.numerics.threads import threads_for

__all__ = ["changes_of_outputs"]

MOST_POINTS, FEWEST_POINTS = 500, 8
WORK = 4e9  # differences of coordinates


def changes_of_outputs(embedding: FittedEmbedding, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean squared change of the outputs when some coordinates are exchanged between points.

    With f the raw outputs and x' the point x with the coordinates of a column taken from another point, this is
    ``mean |f(x') - f(x)|^2`` over points x, half of it the total effect of the column [Sobol2001]_. Targets are not
    used. Unlike the share of the kernel, it is small for a column that the kernel sees but the coefficients do not use.

    Parameters
    ----------
    embedding : FittedEmbedding
        With dense points.
    places : sequence of ndarray of int
        The coordinates of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import EmbeddingClassifier
    >>> from kernelwright.estimators.sensitivity import changes_of_outputs
    >>> from kernelwright.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = EmbeddingClassifier(Gaussian(1.0), learn=None).fit(X, X[:, 0] > 0)
    >>> used, unused = changes_of_outputs(model.embedding_, [np.array([0]), np.array([1])])
    >>> bool(used > 10 * unused)
    True
    """
    points, random = embedding.points, np.random.default_rng(0)
    n = int(np.clip(WORK / (len(points) * points.shape[1] * max(len(places), 1)), FEWEST_POINTS, MOST_POINTS))
    some = torch.from_numpy(np.sort(random.permutation(len(points))[:n]))
    others = torch.from_numpy(random.permutation(len(points))[: len(some)])
    own, taken = points[some], points[others]
    changes = np.zeros(len(places))
    with torch.no_grad(), threads_for(len(points)):
        base = embedding.outputs(None, own)[0]
        for place, coordinates in enumerate(places):
            changed = own.clone()
            changed[:, torch.from_numpy(coordinates)] = taken[:, torch.from_numpy(coordinates)]
            changes[place] = float((embedding.outputs(None, changed)[0] - base).square().sum(1).mean())
    return changes
