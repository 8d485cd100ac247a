"""Rows that come batch by batch, for a classifier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch

from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.estimators.arrows import FitPlan
from kernelwright.estimators.batches import (
    WhereRowsStay,
    WithFeatures,
    add_rows,
    check_named,
    checked_block,
    first_rows,
    of_every_class,
    widened,
)
from kernelwright.estimators.calibrating import Calibrated, calibrate
from kernelwright.estimators.checking import plan_of
from kernelwright.estimators.first_rows import FirstRows
from kernelwright.estimators.growing import (
    GrowingRows,
    Growth,
    NewRows,
    prior_is_fixed,
    refuse_growth,
    refuse_streams,
    tree_of,
)
from kernelwright.estimators.streaming import RunningEmbedding
from kernelwright.inputs.dataset import ClassInfo
from kernelwright.inputs.targets import ClassTargets
from kernelwright.learning import LearningMethod, learning_method
from kernelwright.numerics.threads import threads_for
from kernelwright.solvers import Solution
from kernelwright.uncertainty.risk import RiskTerms

__all__ = ["ClassStreams"]


class ClassStreams:
    """A classifier to which rows can be added."""

    classes_: np.ndarray
    class_weight: Any
    embedding_: FittedEmbedding
    features: Any
    learn: LearningMethod | str | None
    probability: Any
    _growing_rows: GrowingRows | None
    _growth: Growth | None
    _info: ClassInfo
    _risk: RiskTerms
    _takes_gaps: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit all rows at once."""
        raise NotImplementedError

    def _keep(self, found: Calibrated, solution: Solution, plan: FitPlan, info: ClassInfo) -> None:
        """Store what predictions and bounds need."""
        raise NotImplementedError

    @WhereRowsStay
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the model, without learning its kernel and ridge again.

        The first call learns the hyperparameters and the scale of the inputs. Pass all ``classes`` to it if its rows
        may lack some. It may also follow ``fit``.

        An embedding of explicit features needs only sums over its rows; its first rows should be a random sample of a
        few thousand. An embedding by a kernel keeps its rows in the leaves of trees, and only leaves with new rows are
        solved again; the first call after ``fit`` or loading solves all of them once. If the model begins with this
        method, the kernel is learned again whenever the rows have doubled, up to 2000 of them. How old rows are
        forgotten is a setting of :class:`kernelwright.solvers.Tree`.

        Parameters
        ----------
        X, y : array-like
        classes : array-like, optional
            All classes that may come. Later calls need not repeat them.
        sample_weight : array-like of shape (n,), optional
            A weight of one means the same in every call.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright import EmbeddingClassifier
        >>> X = np.random.default_rng(0).uniform(-2, 2, (700, 2))
        >>> y = np.sin(3 * X[:, 0]) * X[:, 1] > 0
        >>> model = EmbeddingClassifier(random_state=0).fit(X[:300], y[:300])
        >>> before = model.score(X[600:], y[600:])
        >>> bool(model.partial_fit(X[300:600], y[300:600]).score(X[600:], y[600:]) > before)
        True
        """
        if self.features is None:
            return self._grown(X, y, classes, sample_weight)
        if "embedding_" in vars(self):
            return self._continued(add_rows(self, self._running(), X, y, sample_weight, unit=self._info.unit))
        check_named(y, classes)
        self.fit(X, y, sample_weight)
        if classes is None:
            return self
        running, self._info = widened(self._running(), self._info, classes, self.class_weight)
        return self._continued(running)

    @WithFeatures
    def fit_batches(self, batches: Iterable[tuple[Any, Any]], classes: Any = None) -> Self:
        """Fit explicit features to an iterator of (X, y) batches, which need not fit in memory together.

        Batches are collected until there are 5000 rows and two classes; the hyperparameters are learned from these.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright import EmbeddingClassifier, features
        >>> parts = np.random.default_rng(0).normal(size=(10, 1000, 2))
        >>> batches = ((X, X[:, 0] * X[:, 1] > 0) for X in parts)
        >>> model = EmbeddingClassifier(features=features.RandomFourier(100), random_state=0).fit_batches(batches)
        >>> bool(model.score(parts[0], parts[0].prod(1) > 0) > 0.95)
        True
        """
        rest = iter(batches)
        X, y = first_rows(rest)
        self.__dict__.pop("embedding_", None)
        self.partial_fit(X, y, classes)
        running = self._running()
        for X, y in rest:
            running = add_rows(self, running, X, np.asarray(y), unit=self._info.unit)
        return self._continued(running)

    def _running(self) -> RunningEmbedding:
        method = learning_method(self.learn, type(self).__name__)
        drawn = method.shrinks_to_frequencies and method.kernel_share is None  # else the prior is of other rows
        return RunningEmbedding.of(self.embedding_, ClassTargets(len(self.classes_)), drawn)

    def _continued(self, running: RunningEmbedding) -> Self:
        """Solve and calibrate the embedding with updated sums."""
        solution, info = running.solution(), replace(self._info, weighted=self._info.weighted or running.weighted)
        plan = replace(plan_of(self), targets=running.targets, warm=not self._risk.fixed_kernel)
        embedding = running.embedding(self.embedding_, solution)
        self._keep(calibrate(solution, embedding, plan, self.probability), solution, plan, info)
        return self

    # Kernels: leaves of trees ---------------------------------------------------------------------------

    def _grown(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Add rows to an embedding by a kernel, or begin one."""
        first: FirstRows | None = vars(self).get("_first")
        if "embedding_" not in vars(self):
            refuse_streams(self, X)
            check_named(y, classes)
            return self._begun(FirstRows.of(X, y, sample_weight, tree_of(self)), classes)
        refuse_growth(self)
        block = checked_block(self, X, y, sample_weight, unit=self._info.unit, gaps=self._takes_gaps)
        if first is not None:
            first = first.joined(X, y, sample_weight, tree_of(self))
            if first.teaches:
                return self._begun(first, self.classes_)
        growth = self._growth_now()
        if len(block.labels):
            targets, points = ClassTargets(len(self.classes_)), self.embedding_.encode(block.X)
            weights, labels = torch.from_numpy(block.weights), torch.from_numpy(block.labels)
            growth = growth.advanced(NewRows(points, targets.encode(block.labels), weights, labels))
            info = replace(self._info, weighted=self._info.weighted or sample_weight is not None)
            self._solved(growth, info)
        self._first = first
        return self

    def _begun(self, first: FirstRows, classes: Any) -> Self:
        """Fit the first rows, and add outputs for classes that are not among them."""
        self.fit(first.X, first.y, first.weights)
        if classes is not None and len(np.setdiff1d(classes, self.classes_)):
            growth = self._growth_now()
            info, places = of_every_class(self._info, classes, self.class_weight)
            self._solved(growth.widened(places, len(info.classes)), info)
        self._first = first.learned()
        return self

    def _growth_now(self) -> Growth:
        known = vars(self).get("_growth")
        if known is not None:
            return known.under(tree_of(self))
        return Growth.resumed(self, ClassTargets(len(self.classes_)).encode(self.embedding_.rows.strata))

    def _solved(self, growth: Growth, info: ClassInfo) -> None:
        """Solve leaves that have changed, and calibrate the embedding with up to 5000 of its rows, left out in turn."""
        targets, rows = ClassTargets(len(info.classes)), growth.data
        plan = replace(plan_of(self), targets=targets, warm=not self._risk.fixed_kernel)
        prior = targets.prior(rows.targets, rows.weights)
        if not plan.method.shrinks_to_frequencies:
            prior = torch.zeros_like(prior)
        elif prior_is_fixed(self) and len(self.embedding_.prior) == len(prior):
            prior = self.embedding_.prior
        with torch.no_grad(), threads_for(growth.settings.leaf):
            solution = growth.solution(prior, growth.judged())
        embedding = growth.embedding(self.embedding_, solution)
        self._keep(calibrate(solution, embedding, plan, self.probability), solution, plan, info)
        self._growth = growth.settled()
        self._growing_rows = self._growth.rows
