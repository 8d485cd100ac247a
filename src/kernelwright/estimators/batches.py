"""Fitting in batches and chunks, for an embedding of explicit features, which needs only sums over its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from kernelwright.embedding.primal import Moments
from kernelwright.embedding.training_set import TrainingSet, smoothed_prior
from kernelwright.features.nystroem import Nystroem
from kernelwright.inputs.arrays import generator, plain, validate_data
from kernelwright.inputs.blocks import Block, Chunks
from kernelwright.inputs.dask_rows import DaskRows, example_row
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.weights import group_numbers
from kernelwright.kernels import FeatureKernel
from kernelwright.solvers.solvers import FEATURE_ROWS, LEFT_OUT_ROWS, explicit, refuse_too_many_features
from kernelwright.storage.saved import saved

__all__ = ["BatchFitting", "EmbeddedRows", "Rows", "counted_groups", "refuse_groups_of_chunks"]


@dataclass(frozen=True)
class Rows:
    """Training rows: vectors as they came, or points that a kernel on other things has made of them."""

    X: Any
    points: Tensor | None
    labels: np.ndarray
    weights: np.ndarray
    groups: np.ndarray | None = None  # a number for each row: rows of a group are left out together
    counts: np.ndarray | None = None  # equal rows that were merged into each

    @classmethod
    def of(cls, block: Block) -> Rows:
        """Vectors that have been checked."""
        return cls(block.X, None, block.labels, block.weights)

    def subset(self, chosen: np.ndarray) -> Rows:
        """Some of the rows; all of them are not copied."""
        if len(chosen) == len(self.labels):
            return self
        X = None if self.X is None else self.X[chosen]
        points = None if self.points is None else self.points[torch.from_numpy(chosen)]
        groups = None if self.groups is None else self.groups[chosen]
        return Rows(X, points, self.labels[chosen], self.weights[chosen], groups)

    def with_mean_weight_one(self) -> Rows:
        """Weights whose sum is the number of rows, or of groups: n in all formulas."""
        n = len(self.weights) if self.groups is None else len(np.unique(self.groups))
        return replace(self, weights=self.weights * (n / self.weights.sum()))

    def merged(self) -> tuple[Rows, np.ndarray]:
        """Vectors of which no two are equal, and for each given row the place of its own.

        Of rows that are left out one at a time only those of equal weight are merged, so that all of a point have the
        same share in it; of a group all rows go together, whatever their weights.
        """
        apart = self.weights if self.groups is None else self.groups
        found = merge_duplicates(self.X, self.labels, self.weights, apart)
        groups, counts = (None, found.counts) if self.groups is None else (found.apart, None)
        return Rows(found.X, None, found.y, found.weights, groups, counts), found.place

    def training_set(self, points: Tensor, n_classes: int, prior: Tensor | None = None) -> TrainingSet:
        """With one-hot targets; ``points`` are the rows as a kernel sees them."""
        counts, groups = (None if each is None else torch.from_numpy(each) for each in (self.counts, self.groups))
        return TrainingSet.of(
            points,
            one_hot(self.labels, n_classes),
            weights=torch.from_numpy(self.weights),
            prior=prior,
            counts=counts,
            groups=groups,
        )


def counted_groups(groups: Any, kept: np.ndarray) -> np.ndarray | None:
    """Numbers of the groups of the rows that count; at least two groups, or none could be left out."""
    if groups is None:
        return None
    found = group_numbers(groups, len(kept))[kept]
    if len(np.unique(found)) < 2:
        raise ValueError(
            "'groups' needs at least 2 different groups among the rows that count: one is left out at a time. "
            "Leave 'groups' away if rows are independent."
        )
    return found


def refuse_groups_of_chunks(groups: Any) -> None:
    """Say that rows which lie in different places cannot be left out together."""
    if groups is not None:
        raise ValueError("'groups' is not there for Dask collections: rows of a group would have to lie in one place.")


@saved("embedded-rows")
@dataclass(frozen=True)
class EmbeddedRows:
    """What is kept of the rows that an embedding was solved on, besides its points."""

    given: np.ndarray  # which of the rows that were passed to fit
    place: np.ndarray  # the point of each
    share: np.ndarray  # its part in the weight of that point
    weights: np.ndarray  # from here on: of each point
    labels: np.ndarray
    counts: np.ndarray | None
    groups: np.ndarray | None

    @classmethod
    def of(cls, given: np.ndarray, place: np.ndarray, weights: np.ndarray, data: TrainingSet) -> EmbeddedRows:
        """From the weights of the given rows, and the training set they were merged into."""
        share = weights / np.bincount(place, weights, len(data))[place]
        counts, groups = (None if each is None else each.numpy() for each in (data.counts, data.groups))
        return cls(given, place, share, data.weights.numpy(), data.strata.numpy(), counts, groups)

    def training_set(self, points: Tensor, coefficients: Tensor, prior: Tensor | None = None) -> TrainingSet:
        """The points again, with targets of the shape of ``coefficients``."""
        counts, groups = (None if each is None else torch.from_numpy(each) for each in (self.counts, self.groups))
        targets = one_hot(self.labels, coefficients.shape[1])
        weights = torch.from_numpy(self.weights)
        return TrainingSet.of(points, targets, weights=weights, prior=prior, counts=counts, groups=groups)


@dataclass(frozen=True)
class RowSums:
    """All that is kept of rows: the moments of their features, and the range of the rows themselves."""

    moments: Moments
    low: Tensor
    high: Tensor

    def __add__(self, other: RowSums) -> RowSums:
        low, high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        return RowSums(self.moments + other.moments, low, high)


def sum_rows(block: Block, kernel: FeatureKernel, scaler: Any, n_classes: int) -> RowSums:
    """The sums of a block, made of some rows at a time."""
    found: RowSums | None = None
    refuse_too_many_features(kernel.features)
    with torch.no_grad():
        for start in range(0, len(block.X), FEATURE_ROWS):
            X, labels, weights = (column[start : start + FEATURE_ROWS] for column in block)
            points = kernel.encode(X if scaler is None else scaler.transform(X))
            moments = Moments.of(kernel.features(points), one_hot(labels, n_classes), torch.from_numpy(weights))
            own = RowSums(moments, points.min(0).values, points.max(0).values)
            found = own if found is None else found + own
    assert found is not None
    return found


def _has_features(model: BatchFitting) -> bool:
    if model.features is None:
        raise AttributeError(
            "Batches need explicit features, such as features=RandomFourier(1000): an embedding by a kernel cannot "
            "forget its rows."
        )
    return True


def _joined(parts: list[Any]) -> Any:
    """Rows one after the other; of data frames a data frame, whose columns have names."""
    if len(parts) == 1:
        return parts[0]
    if not all(hasattr(part, "iloc") for part in parts):
        return np.concatenate([np.asarray(part) for part in parts])
    import pandas as pd

    if any(list(part.columns) != list(parts[0].columns) for part in parts):
        raise ValueError("The columns of the batches differ, or stand in another order.")
    return pd.concat(parts, ignore_index=True)


class BatchFitting:
    """``partial_fit`` and ``fit_batches`` for a classifier that keeps sums over the rows it has seen."""

    if TYPE_CHECKING:  # what the classifier itself has
        features: Any
        classes_: np.ndarray
        kernel_: Any
        ridge_: float
        fit: Any
        class_weight: Any
        learn: Any
        kernel_share: float | None
        holdout_share: float | None
        batch_size: int | None
        scale: str | None
        n_features_in_: int
        random_state: Any
        features_: Any
        scaler_: Any
        _moments: tuple[Moments, TrainingSet, int]  # of all rows, a fair sample of them, their number
        _weight_unit: float
        _range: tuple[Tensor, Tensor]
        _rows: Any
        _gather: Any
        _learn: Any
        _calibrate: Any
        _report_signature: Any
        _weighted: bool
        _holdout: Any

        @property
        def _explicit(self) -> bool: ...

    @available_if(_has_features)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to an embedding of explicit features, which needs only sums over all rows that it has seen.

        The first call learns the hyperparameters (and the scale of the inputs) from its rows, which should be a fair
        sample of some thousand; later calls add theirs and solve again.

        Parameters
        ----------
        X, y : array-like
            Some rows.
        classes : array-like, optional
            All classes, in the first call, where its rows may not show all.
        sample_weight : array-like, optional
        """
        if not hasattr(self, "_moments"):
            self._first_fit(X, y, classes, sample_weight)
        else:
            self._add(X, y, sample_weight)
            self._solve_again()
        return self

    def _first_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Fit to the first rows, and make room for classes that they do not show."""
        if classes is not None:
            missing = np.setdiff1d(column_or_1d(y), classes)
            if len(missing):
                raise ValueError(f"Labels {list(missing)} are not among the given classes.")
        self.fit(X, y, sample_weight)
        if classes is None:
            return
        known, self.classes_ = self.classes_, np.unique(classes)
        if not isinstance(self.class_weight, str):  # of classes that no row has shown yet, too
            of_class = self.class_weight or {}
            self.class_weight_ = np.array([float(of_class.get(label, 1.0)) for label in self.classes_])
        moments, sample, n_rows = self._moments
        places = torch.from_numpy(np.searchsorted(self.classes_, known))

        def widened(columns: Tensor) -> Tensor:
            wide = columns.new_zeros(len(columns), len(self.classes_))
            wide[:, places] = columns
            return wide

        moments = replace(moments, cross=widened(moments.cross))
        targets, prior = widened(sample.targets), widened(sample.prior[None])[0]
        sample = replace(sample, targets=targets, prior=prior, strata=places[sample.strata])
        self._moments = moments, sample, n_rows
        self._solve_again()

    def _add(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Add rows to the sums. The absolute ridge n lambda was learned: it stays."""
        if self._moments[1].groups is not None:
            raise ValueError("Rows cannot be added to a model of 'groups'. Fit all rows at once, with their groups.")
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"Labels {list(unknown)} are new: pass all classes to the first call of partial_fit.")
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows at once; pass a dict to fit in batches.")
        weights = self._given(y, sample_weight) * self._weight_unit
        counted = weights > 0
        if not counted.any():
            return
        block = Block(X[counted], np.searchsorted(self.classes_, y[counted]), weights[counted])
        sums = sum_rows(block, self.kernel_, self.scaler_, len(self.classes_))
        before, sample, n_before = self._moments
        sums += RowSums(before, *self._range)
        self._moments = sums.moments, self._resampled(sample, n_before, block), n_before + len(block.labels)
        self._range = sums.low, sums.high
        self.ridge_ *= before.total / sums.moments.total
        self._weighted |= sample_weight is not None

    def _given(self, y: np.ndarray, sample_weight: Any) -> np.ndarray:
        """Weights as they are given. What a weight of one means is settled by the first rows, for all that follow."""
        weights = _check_sample_weight(plain(sample_weight), y, dtype=np.float64, ensure_non_negative=True)
        classes, place = np.unique(y, return_inverse=True)
        of_class = self.class_weight or {}
        return weights * np.array([of_class.get(label, 1.0) for label in classes])[place]

    def _resampled(self, sample: TrainingSet, n_before: int, block: Block) -> TrainingSet:
        """A fair sample of all rows so far, to calibrate on; of a class that it lacks at least one row."""
        n_new = len(block.labels)
        random, n_chosen = np.random.default_rng(n_before), n_new
        if len(sample) + n_new > LEFT_OUT_ROWS:
            n_chosen = min(n_new, random.binomial(LEFT_OUT_ROWS, n_new / (n_new + n_before)))
        order = random.permutation(n_new)
        lacking, first = np.unique(block.labels[order], return_index=True)
        first = first[np.isin(lacking, sample.strata.numpy(), invert=True)]
        chosen = np.concatenate([order[first], np.delete(order, first)])[: max(n_chosen, len(first))]
        X, labels, weights = (column[chosen] for column in block)
        points = self.kernel_.encode(X if self.scaler_ is None else self.scaler_.transform(X))
        added = TrainingSet.of(points, one_hot(labels, len(self.classes_)), weights=torch.from_numpy(weights))
        return sample.unmerged().sample(LEFT_OUT_ROWS - len(chosen), generator(n_before)).joined(added)

    def _solve_again(self) -> None:
        moments, sample, n_rows = self._moments
        if self.learn == "auto":
            sample = replace(sample, prior=smoothed_prior(sample.targets, sample.weights))
            self._moments = moments, sample, n_rows
        self._holdout = None  # losses of the model as it was before
        self._calibrate(explicit(moments, self.kernel_.features, sample, self.ridge_), self._feature_bound())

    def _feature_bound(self) -> float:
        """``alpha``: the square root of ``sup k(x, x)``, the largest value of all rows where there is no bound."""
        bound = self.kernel_.features.bound
        return math.sqrt(self._moments[0].largest if bound is None else bound)

    @available_if(_has_features)
    def fit_batches(self, batches: Iterable[tuple[Any, Any]], classes: Any = None) -> Self:
        """Fit explicit features to an iterator of (X, y) batches, which are never in memory all at once.

        Batches are gathered until there are 5000 rows and two classes; these decide the hyperparameters.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright import EmbeddingClassifier
        >>> from kernelwright.features import RandomFourier
        >>> rng = np.random.default_rng(0)
        >>> def batches():
        ...     for _ in range(10):
        ...         X = rng.normal(size=(1000, 2))
        ...         yield X, (X[:, 0] * X[:, 1] > 0).astype(int)
        >>> model = EmbeddingClassifier(features=RandomFourier(100), random_state=0).fit_batches(batches())
        >>> X, y = next(batches())
        >>> bool(model.score(X, y) > 0.95)
        True
        """
        rest = iter(batches)
        first: list[tuple[Any, np.ndarray]] = []
        for X, y in rest:
            first.append((X, np.asarray(y)))
            labels = np.concatenate([part for _, part in first])
            if len(labels) >= LEFT_OUT_ROWS and len(np.unique(labels)) > 1:
                break
        if not first:
            raise ValueError("There was no batch to fit to.")
        self._first_fit(_joined([part for part, _ in first]), labels, classes, None)
        for X, y in rest:
            self._add(X, np.asarray(y))
        self._solve_again()
        return self

    # all rows in chunks ---------------------------------------------------------------------------------

    def _sums_suffice(self) -> bool:
        """Whether nothing is asked for that needs single rows afterwards."""
        return self._explicit and self.kernel_share is None and self.holdout_share is None

    def _known_beforehand(self, kernel: Any) -> bool:
        """Whether the features take nothing from the rows: neither learned numbers nor landmarks nor a scale."""
        from_rows = isinstance(kernel.features, Nystroem) or getattr(kernel.features, "median", False)
        return self.learn is None and self.scale in (None, "auto") and not from_rows

    def _check_chunks(self, X: Any, y: Any, sample_weight: Any) -> DaskRows:
        """A Dask collection, its classes known, ready to be read."""
        if not self._sums_suffice():
            raise ValueError(
                "Rows in a Dask collection are summed up where they are: this needs features=..., such as "
                "features=RandomFourier(1000), and neither kernel_share nor holdout_share. For an embedding by a "
                "kernel bring the rows here: fit(X.compute(), y.compute())."
            )
        validate_data(self, example_row(X), skip_check_array=True)  # names and number of columns
        chunks, self.classes_, self._weighted = DaskRows.read(X, y, sample_weight, self.class_weight, self)
        self.class_weight_ = chunks.factors
        return chunks

    def _fit_chunks(self, kernel: Any, chunks: Chunks) -> Self:
        """Learn the hyperparameters from a random sample and sum up all rows, in one pass where nothing is learned."""
        random = generator(self.random_state)
        seed = int(torch.randint(2**31 - 1, (), generator=random))
        some, n_classes, sums = chunks.some_rows(np.random.default_rng(seed)), len(self.classes_), None
        self.scaler_ = None
        if self._known_beforehand(kernel):
            kernel.prepare(torch.empty(0, self.n_features_in_, dtype=torch.float64))
            sample, sums = chunks.take_and_reduce(some, sum_rows, kernel, None, n_classes)
        else:
            sample = chunks.take(some)
        data, place = self._gather(kernel, Rows.of(sample))
        self._rows = EmbeddedRows.of(np.ones(len(place), dtype=bool), place, sample.weights, data)
        self._learn(kernel, data, len(chunks), random)
        self.features_ = self.kernel_.features
        if sums is None:
            sums = chunks.map_reduce(sum_rows, self.kernel_, self.scaler_, n_classes)
        if self.learn not in (None, "median") and self.batch_size is None:
            self.ridge_ *= data.total_weight / sums.moments.total  # what a sample says of all rows is n lambda
        self._moments = sums.moments, data.sample(LEFT_OUT_ROWS, random), len(chunks)
        self._range = sums.low, sums.high
        self._solve_again()
        if self.features is None:
            self._report_signature()
        return self
