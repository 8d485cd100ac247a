"""What a regressor with predicted distributions offers: means, quantiles, densities, samples and scores."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.distributions.fitted import DistributionLink, LeftOutTarget
from kernelwright.distributions.predictive import Prediction
from kernelwright.estimators.answers import AnswersInFrames, in_frames, the_ends
from kernelwright.estimators.base import by_chunks
from kernelwright.estimators.compressing import NumbersCompressed
from kernelwright.estimators.embedded import EmbeddingEstimator
from kernelwright.estimators.importance import MeasuresColumns
from kernelwright.estimators.number_bounds import number_bound
from kernelwright.estimators.spread import predictions_of
from kernelwright.inputs.any_targets import check_levels
from kernelwright.inputs.arrays import random_numbers
from kernelwright.inputs.dask_rows import is_dask
from kernelwright.inputs.numbers import NumberInfo, check_numbers
from kernelwright.uncertainty.bounds import RiskBound

__all__ = ["PredictsNumbers"]


class PredictsNumbers(AnswersInFrames, RegressorMixin, MeasuresColumns, NumbersCompressed, EmbeddingEstimator):
    """Predictions from fitted ``links_`` and the outputs of an embedding."""

    links_: tuple[DistributionLink, ...]
    left_out_: tuple[LeftOutTarget, ...]
    _info: NumberInfo
    random_state: Any
    loss_measure = "CRPS"

    @property
    def target_range_(self) -> np.ndarray:
        """The range of the target, given by ``distribution`` or inferred by its rule; with k targets of shape (k, 2).

        No prediction leaves it.
        """
        if "links_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has 'target_range_' only after a fit.")
        return self._shaped([np.array([link.scale.low, link.scale.high])[None] for link in self.links_])[0]

    def _predictions(self, X: Any) -> list[Prediction]:
        check_is_fitted(self)
        outputs, support = self._outputs_and_support(X)
        return predictions_of(self.links_, outputs.numpy(), support.numpy())

    def _means(self, outputs: Tensor, support: Tensor) -> np.ndarray:
        found = predictions_of(self.links_, outputs.numpy(), support.numpy())
        return np.column_stack([each.mean() for each in found])

    def _shaped(self, of_targets: list[np.ndarray]) -> np.ndarray:
        """Return one array: of shape (n, ...), or (n, k, ...) if there were several targets."""
        return of_targets[0] if self._info.one_column else np.stack(of_targets, 1)

    def given_numbers(self, y: Any, n: int) -> np.ndarray:
        """Check one target for each row, or k of them."""
        numbers, _ = check_numbers(y)
        if len(numbers) != n or numbers.shape[1] != self._info.n_targets or np.isnan(numbers).any():
            wanted = f"({n},)" if self._info.one_column else f"({n}, {self._info.n_targets})"
            raise ValueError(f"Targets must be numbers of shape {wanted}, without gaps. Got shape {np.shape(y)}.")
        return numbers

    @in_frames()
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean at each row, and with ``return_std`` also the standard deviation of a new target there.

        The deviation is mostly noise where :meth:`support` is one or more; where it is near zero, there are no data.
        """
        if not return_std:
            return self._mean(X)
        if is_dask(X):
            return self._mean(X), self._deviation(X)
        found = self._predictions(X)
        return self._shaped([each.mean() for each in found]), self._shaped([each.std() for each in found])

    @by_chunks
    def _mean(self, X: Any) -> np.ndarray:
        return self._shaped([each.mean() for each in self._predictions(X)])

    @by_chunks
    def _deviation(self, X: Any) -> np.ndarray:
        return self._shaped([each.std() for each in self._predictions(X)])

    @in_frames(lambda model, q: q)
    @by_chunks
    def quantile(self, X: Any, q: Any) -> np.ndarray:
        """Return quantiles of the target at each row; they never cross.

        Parameters
        ----------
        X : array-like
        q : float or sequence of floats in [0, 1]

        Returns
        -------
        ndarray of shape (n,) or (n, len(q)); with k targets of shape (n, k) or (n, k, len(q))
        """
        levels = check_levels(q)
        found = self._predictions(X)
        rows = [each.quantile(_rows_of(np.atleast_1d(levels), each)) for each in found]
        return self._shaped([each[:, 0] if levels.ndim == 0 else each for each in rows])

    @in_frames(the_ends)
    def interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return the central interval that holds the target with this probability.

        Returns
        -------
        ndarray of shape (n, 2); with k targets of shape (n, k, 2)
        """
        if not 0 < coverage < 1:
            raise ValueError(f"The 'coverage' parameter must lie between 0 and 1. Got {coverage!r} instead.")
        return self.quantile(X, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])

    def left_out_band(self, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return central intervals of rows that were left out in closed form, their targets and their indices.

        There is one target. With all rows left out in turn (an exact solution, or explicit features of up to 5000
        rows), there is an interval for each row that ``fit`` used, and the indices are those of the rows it was given;
        otherwise the rows are a sample, and the indices None.
        """
        check_is_fitted(self)
        if len(self.links_) != 1:
            raise ValueError(f"Intervals of left-out rows are for one target. Got {len(self.links_)}.")
        rows, kept = self.left_out_[0], self.embedding_.rows
        found = self.links_[0](rows.location, rows.log_scale, rows.direct, rows.support)
        levels = np.array([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
        band, y = found.quantile(_rows_of(levels, found)), rows.y
        if len(y) != len(kept.weights):
            return band, y, None
        return band[kept.place], y[kept.place], np.flatnonzero(kept.given)

    @in_frames(lambda model, t: t)
    @by_chunks
    def cdf(self, X: Any, t: Any) -> np.ndarray:
        """Return ``P(Y <= t)`` at each row.

        Parameters
        ----------
        X : array-like
        t : float or sequence of floats
            Points, the same for all rows and targets.

        Returns
        -------
        ndarray of shape (n,) or (n, len(t)); with k targets of shape (n, k) or (n, k, len(t))
        """
        points = np.asarray(t, dtype=np.float64)
        if points.ndim > 1 or np.isnan(points).any():
            raise ValueError(f"The 't' parameter must be a number or a list of numbers. Got {t!r} instead.")
        rows = [each.cdf(_rows_of(np.atleast_1d(points), each)) for each in self._predictions(X)]
        return self._shaped([each[:, 0] if points.ndim == 0 else each for each in rows])

    @in_frames()
    def log_density(self, X: Any, y: Any) -> np.ndarray:
        """Return the log density of the target y of each row; for a discrete target, its log probability."""
        found = self._predictions(X)
        numbers = self.given_numbers(y, len(found[0]))
        return self._shaped([each.log_density(column) for each, column in zip(found, numbers.T, strict=True)])

    @in_frames()
    def crps(self, X: Any, y: Any) -> np.ndarray:
        """Return the continuous ranked probability score of each row, in units of the target; smaller is better.

        It is ``E|Y - y| - E|Y - Y'| / 2`` for independent draws Y, Y' of the prediction: the absolute error of a
        prediction that is certain.
        """
        found = self._predictions(X)
        numbers = self.given_numbers(y, len(found[0]))
        return self._shaped([each.crps(column) for each, column in zip(found, numbers.T, strict=True)])

    def losses_of_rows(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Return the CRPS of each row; of several targets, the mean in units of their mean absolute deviations."""
        found = np.asarray(self.crps(X, y))
        if self._info.one_column:
            return found
        units = np.abs(y - y.mean(0)).mean(0)
        return (found / np.where(units > 0, units, 1.0)).mean(1)

    @in_frames()
    def sample(self, X: Any, size: int, random_state: Any = None) -> np.ndarray:
        """Return independent draws from the distribution at each row.

        Draws of several targets keep the dependence of their residuals: each takes the ranks of all residuals of one
        left-out row.

        Parameters
        ----------
        X : array-like
        size : int
        random_state : int, RandomState or None, default=None
            ``None`` is that of the estimator.

        Returns
        -------
        ndarray of shape (n, size); with k targets of shape (n, k, size)
        """
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"The 'size' parameter of sample must be an integer of at least 1. Got {size!r}.")
        found = self._predictions(X)
        random = random_numbers(self.random_state if random_state is None else random_state)
        levels = random.uniform(size=(len(found[0]), len(found), int(size)))
        if len(found) > 1:
            ranks, shares = self._residual_ranks()
            rows = random.choice(len(ranks), size=(len(found[0]), int(size)), p=shares)
            within = (random.uniform(size=levels.shape) - 0.5) * shares[rows][:, None]
            levels = np.clip(ranks[rows].transpose(0, 2, 1) + within, 1e-9, 1 - 1e-9)
        return self._shaped([each.quantile(levels[:, j]) for j, each in enumerate(found)])

    def _residual_ranks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks of the residuals of left-out rows, from 0 to 1, and the share of each row in the weights.

        The ranks of a row depend on each other.
        """
        fixed, columns = np.random.default_rng(0), []
        shares = self.left_out_[0].weights / self.left_out_[0].weights.sum()
        for link, rows in zip(self.links_, self.left_out_, strict=True):
            prediction = link(rows.location, rows.log_scale, rows.direct, rows.support)
            order = np.argsort(prediction.spread_pit(rows.y, fixed))
            ranks = np.empty(len(order))
            ranks[order] = np.cumsum(shares[order]) - 0.5 * shares[order]
            columns.append(ranks)
        return np.column_stack(columns), shares

    def risk_bound(
        self,
        method: str = "holdout",
        X: Any = None,
        y: Any = None,
        *,
        beta: float = 0.05,
        loss: str = "absolute",
        limit: float | None = None,
        target: int = 0,
    ) -> RiskBound:
        """Bound the expected error at new rows, clipped at a limit; the record prints as a table.

        Parameters
        ----------
        method : {"holdout", "leave-one-out", "rademacher", "rademacher-fixed-kernel"}, default="holdout"
            "holdout" needs held-out rows: pass them, or let ``fit`` hold some out (``holdout_share`` of the learning
            method). "leave-one-out" is an estimate without guarantee; its upper limit (``upper``) holds about as often
            as stated. The others bound the squared loss of the location by the norm of the embedding.
            "rademacher-fixed-kernel" needs a kernel that was learned from other rows (``kernel_share``) or not at all;
            "rademacher" does not, and is almost always vacuous.
        X, y : array-like, optional
            Rows that the model has never seen, for "holdout". They must be independent: only one row of each group.
        beta : float, default=0.05
            The bound may fail with this probability.
        loss : {"absolute", "squared"}, default="absolute"
        limit : float or None, default=None
            Errors beyond it count as the limit, in units of the target; no bound exists for errors of any size. Choose
            it before seeing the rows. ``None`` is three standard deviations of the target in the training rows (for the
            bounds by the norm, rounded up to a power of two). The conditions of the record state it.
        target : int, default=0
            Which one of several targets.

        Returns
        -------
        RiskBound
            With ``parts``, ``total``, ``upper``, ``largest`` (the largest possible loss), ``confidence``, ``vacuous``,
            ``guaranteed``, ``method``, ``conditions``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from kernelwright import EmbeddingRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = EmbeddingRegressor(random_state=0).fit(X[::2], y[::2])
        >>> bound = model.risk_bound("holdout", X[1::2], y[1::2])
        >>> bound.confidence, 40 < bound.total < 80, bound.vacuous
        (0.95, True, False)
        """
        check_is_fitted(self)
        return number_bound(self, method, X, y, beta=beta, loss=loss, limit=limit, target=target)

    @in_frames()
    @by_chunks
    def support(self, X: Any) -> np.ndarray:
        """Return how well the training rows support a prediction at each row.

        One or more is usual; about one row in a hundred from the same distribution is below one, and near zero the
        model knows nothing and predicts the distribution of all targets.
        """
        check_is_fitted(self)
        return self._outputs_and_support(X)[1].numpy()


def _rows_of(values: np.ndarray, prediction: Prediction) -> np.ndarray:
    return np.broadcast_to(values, (len(prediction), len(values)))
