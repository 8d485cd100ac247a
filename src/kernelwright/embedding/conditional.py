"""The conditional distribution of any target: weights of training rows, and quantities computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.dataset import Dataset
from kernelwright.inputs.layout import TableLayout
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.kernels import Kernel
from kernelwright.kernels.coordinates import coordinates_of
from kernelwright.numerics.linalg import Factor
from kernelwright.storage.saved import saved

__all__ = ["FactorisedEmbedding", "MergedRows", "distribution_function", "merge_rows", "quantile_places", "whole"]


@saved("merged-rows")
@dataclass(frozen=True)
class MergedRows:
    """Training rows with targets of any kind; equal rows are merged.

    Parameters
    ----------
    points : Tensor
        Distinct rows, encoded for the kernel.
    number : ndarray
        For each point, the index of its target among the distinct targets.
    counts : ndarray
        Number of given rows merged into each point.
    place : ndarray
        For each given row, the index of its point.
    scaler : transformer or None
        Transform applied to inputs before the kernel.
    """

    points: Tensor
    number: np.ndarray
    counts: np.ndarray
    place: np.ndarray
    scaler: Any = None

    def training_set(self, features: Tensor, *, centred: bool, classes: bool) -> TrainingSet:
        """Return the rows with target features; ``features`` has a row for each distinct target.

        With ``centred``, outputs shrink towards the mean of the features. If targets are ``classes``, samples and folds
        are stratified.
        """
        number, counts = torch.from_numpy(self.number), torch.from_numpy(self.counts)
        targets = features[number]
        prior = counts @ targets / counts.sum() if centred else None
        strata = number if classes else torch.zeros_like(number)
        return TrainingSet.of(self.points, targets, weights=counts, counts=counts, prior=prior, strata=strata)

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over the rows of each point of values of the given rows, a column for each component."""
        # Equal rows share a weight equally, so only their mean matters.
        return np.column_stack([np.bincount(self.place, column, len(self.counts)) / self.counts for column in values.T])


def merge_rows(
    X: Any,
    number: np.ndarray,
    kernel: Kernel,
    scale: str | None,
    scaler: Any = None,
    layout: TableLayout | None = None,
) -> MergedRows:
    """Merge rows with equal inputs and targets, then scale and encode them; only vectors are scaled.

    A given ``scaler`` was fitted to other rows; ``layout`` says what the columns are, if the rows are codes.
    """
    ones = np.ones(len(number))
    if not kernel.takes_vectors:
        return MergedRows(kernel.encode_training(X), number, ones, np.arange(len(number)))
    rows, place = Dataset(X, None, number, ones).merged()
    if scaler is None and layout is not None:
        scaler = coordinates_of(layout, rows.X, kernel, rows.weights, rows.counts)
    elif scaler is None:
        scaler = fit_scaler(scale, rows.X, rows.weights)
    points = kernel.encode(rows.X if scaler is None else scaler.transform(rows.X))
    return MergedRows(points, rows.y, rows.weights, place, scaler)


@saved("factorised-embedding")
@dataclass(frozen=True)
class FactorisedEmbedding:
    """An embedding that keeps the factor of ``K + n ridge I``, because each new function of the target needs it."""

    kernel: Kernel  # with its learned parameters
    ridge: float
    rows: MergedRows
    factor: Factor
    fills: bool = False  # whether the mass that the weights lack to sum to one is spread evenly over all rows

    @property
    def scaler(self) -> Any:
        """The transform applied to inputs before the kernel."""
        return self.rows.scaler

    @property
    def points(self) -> Tensor:
        """The distinct training rows, encoded for the kernel."""
        return self.rows.points

    @property
    def jitter(self) -> float:
        """The number added to the diagonal so that it could be factorised."""
        return self.factor.jitter

    def weights(self, K: Tensor) -> Tensor:
        """Return the weights of the points in Eq. (2), given rows of kernel values with them."""
        found = self.factor.solve(K.T.contiguous()).T
        if not self.fills:
            return found
        counts = torch.from_numpy(self.rows.counts)
        return whole(found, counts / counts.sum())

    def row_weights(self, K: Tensor) -> Tensor:
        """Return the weights of the rows as given: equal rows share a weight."""
        place, share = self.rows.place, 1.0 / self.rows.counts
        return self.weights(K)[:, torch.from_numpy(place)] * torch.from_numpy(share[place])

    def masses(self, K: Tensor) -> Tensor:
        """Return the weights of the distinct targets: sums over their rows."""
        weights, number = self.weights(K), torch.from_numpy(self.rows.number)
        return torch.zeros(len(K), int(number.max()) + 1, dtype=torch.float64).index_add_(1, number, weights)

    def whole_masses(self, K: Tensor) -> Tensor:
        """Return masses of the distinct targets that sum to one."""
        counts = torch.from_numpy(self.rows.counts)
        shares = torch.bincount(torch.from_numpy(self.rows.number), counts) / counts.sum()
        return whole(self.masses(K), shares)

    def solve(self, values: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the value of ``E[g(Y) | x]`` far from all data, and the coefficients of k(x) in it.

        ``values`` are the values of g at the target of each given row, a column for each component of g.
        """
        counts, merged = self.rows.counts, self.rows.means(values)
        means = torch.from_numpy(counts @ merged / counts.sum() * self.fills)
        return means, self.factor.solve(torch.from_numpy(merged) - means)


def whole(weights: Tensor, shares: Tensor) -> Tensor:
    """Return weights that sum to one: the missing mass is spread in fixed shares.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.embedding.conditional import whole
    >>> whole(torch.tensor([[0.5, 0.1]]), torch.tensor([0.25, 0.75]))
    tensor([[0.6000, 0.4000]])
    """
    return weights + (1.0 - weights.sum(1, keepdim=True)) * shares


def distribution_function(masses: Tensor, marginal: Tensor, method: str) -> Tensor:
    """Return the cumulative mass at each of the sorted targets, for rows of masses that may be negative.

    "rearrange" completes the masses to one with the marginal masses and sorts the cumulative sums. "clip" sets negative
    masses to zero and normalises, as Eq. (6) does for classes.
    """
    if method == "rearrange":
        return whole(masses, marginal).cumsum(1).sort(1).values
    if method != "clip":
        raise ValueError(f"The 'method' parameter must be 'clip' or 'rearrange'. Got {method!r} instead.")
    masses = masses.clamp(min=0.0)
    total = masses.sum(1, keepdim=True)
    # If no weight is positive, only the marginal distribution is known.
    return torch.where(total > 0, masses / total.clamp(min=1e-300), marginal).cumsum(1)


def quantile_places(below: Tensor, levels: np.ndarray) -> np.ndarray:
    """Return, for each row of a distribution function and each level q, the first target with mass at least q up to it.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from kernelwright.embedding.conditional import quantile_places
    >>> quantile_places(torch.tensor([[0.2, 0.5, 1.0]], dtype=torch.float64), np.array([0.0, 0.5, 0.6]))
    array([[0, 1, 2]])
    """
    # A rounding error in the cumulative mass must not move the quantile, and no quantile lies outside all mass.
    asked = torch.from_numpy(np.maximum(levels - 1e-12, 1e-12))
    places = torch.searchsorted(below.contiguous(), asked.expand(len(below), -1).contiguous())
    return places.clamp(max=below.shape[1] - 1).numpy()
