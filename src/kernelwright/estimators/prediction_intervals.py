"""Prediction intervals with a chosen coverage, for any regressor."""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelwright.errors import CalibrationWarning
from kernelwright.estimators.answers import AnswersInFrames, in_frames, the_ends
from kernelwright.estimators.base import part_of
from kernelwright.estimators.regressor import EmbeddingRegressor
from kernelwright.inputs.numbered_rows import NumberedRows
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.coverage_groups import AllRows, make_groups
from kernelwright.uncertainty.interval_calibration import (
    IntervalCalibration,
    band_of,
    calibrate_folds,
    calibrate_margins,
    too_small,
)
from kernelwright.uncertainty.interval_summary import IntervalSummary
from kernelwright.uncertainty.regressor_quantiles import has_quantiles, innermost, quantiles_of, range_of

__all__ = ["PredictionIntervals"]

FOLDS_UP_TO = 2000  # rows; beyond, learned hyperparameters add little bias, and more fits are expensive


@saved("prediction-intervals", fields="regressor_ method_ calibration_")
class PredictionIntervals(AnswersInFrames, RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Conformal prediction intervals: intervals that hold a new target with a chosen coverage.

    Parameters
    ----------
    regressor : estimator
        Any regressor, from here or scikit-learn; a copy is fitted. If it has a method ``quantile(X, q)``, as
        :class:`EmbeddingRegressor` has, its quantiles are widened or narrowed until they cover (conformalised quantile
        regression, [Romano2019]_), also if it is the last step of a Pipeline, or in a search or a
        TransformedTargetRegressor. Otherwise all intervals have the same width, by absolute residuals. If it states
        the range of its target as ``target_range_``, intervals do not leave it.
    coverage : float, default=0.9
        Share of new rows whose interval should hold the target.
    by : int, str, callable, "scale" or None, default=None
        Groups of rows, each of which should have the coverage: a column by its index or name, a function of ``X`` that
        returns a label for each row, or "scale", the thirds of rows with the narrowest, middle and widest predicted
        bands (only with quantiles). A group without enough rows gets infinite intervals, with a warning.
    method : {"auto", "cross", "leave-one-out", "split", "prefit"}, default="auto"
        "split" holds out ``calibration_share`` of the rows for calibration: any regressor, and the strongest guarantee.
        "cross" (CV+ of [Barber2021]_) fits ``n_folds`` more copies, each without one fold, which calibrates it; it uses
        all rows for fitting and for calibration. "leave-one-out" is for :class:`EmbeddingRegressor` only, and needs no
        further fit: the regressor has predicted each row without it, in closed form. It is approximate. "prefit" takes
        a regressor that was fitted on other rows. "auto" is "cross" for an :class:`EmbeddingRegressor` of up to 2000
        rows (also inside of a Pipeline and the like), "leave-one-out" for one of more, and "split" for all others.
    calibration_share : float, default=0.3
        Share of calibration rows for "split".
    n_folds : int, default=10
        Number of folds for "cross".
    random_state : int, RandomState or None, default=None
        For "split" and "cross".

    Attributes
    ----------
    regressor_ : estimator
    method_ : str
    calibration_ : IntervalCalibration
        The calibration (:mod:`kernelwright.uncertainty.interval_calibration`). A part of it: ``n_calibration_``, the
        number of calibration rows.
    n_features_in_, feature_names_in_

    Notes
    -----
    Guarantees for n exchangeable rows: "split" and "prefit" have at least ``coverage``, also in each group ("prefit"
    with ``by="scale"`` nearly so, because the same rows divide the groups); "cross" has at least
    ``2 coverage - 1 - sqrt(2 / n)`` [Barber2021]_, and in practice about ``coverage``. There is no proof for
    "leave-one-out": all rows share hyperparameters that were learned from them. Targets of few values are covered more
    often than asked for, because rows with equal scores cannot be told apart. With ``groups``, rows of a group are left
    out together. There is one target; for several, fit one PredictionIntervals for each.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import EmbeddingRegressor, PredictionIntervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (400, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * (2 + X[:, 0]) * rng.normal(size=400)  # the noise grows with x
    >>> model = PredictionIntervals(EmbeddingRegressor(random_state=0), 0.8, method="split", random_state=0)
    >>> summary = model.fit(X[:200], y[:200]).summary(X[200:], y[200:])
    >>> bool(0.7 < summary.coverage[0] < 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "regressor": [HasMethods(["fit", "predict"])],
        "coverage": [Interval(Real, 0, 1, closed="neither")],
        "by": [Integral, str, callable, None],
        "method": [StrOptions({"auto", "cross", "leave-one-out", "split", "prefit"})],
        "calibration_share": [Interval(Real, 0, 1, closed="neither")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    calibration_: IntervalCalibration
    n_calibration_ = part_of("calibration_", "n_rows")

    def __init__(
        self,
        regressor: Any,
        coverage: float = 0.9,
        *,
        by: Any = None,
        method: str = "auto",
        calibration_share: float = 0.3,
        n_folds: int = 10,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.coverage = coverage
        self.by = by
        self.method = method
        self.calibration_share = calibration_share
        self.n_folds = n_folds
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self.regressor.__sklearn_tags__().input_tags
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PredictionIntervals:
        """Fit the regressor, and calibrate the intervals on rows that it has not seen.

        Parameters
        ----------
        X : array-like
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Row weights for the regressor. The coverage counts *rows*, whatever their weights.
        groups : array-like of shape (n,), optional
            Group labels. The rows of a group calibrate only models that were fitted without that group. They are passed
            to the regressor if its ``fit`` takes them.
        """
        self._validate_params()
        if isinstance(self.by, str) and self.by == "scale" and not has_quantiles(self.regressor):
            raise ValueError(
                f"by='scale' needs a regressor with a method quantile(X, q), which predicts the scale of each row. Got "
                f"{self.regressor!r}; use EmbeddingRegressor, or another 'by'."
            )
        rows = NumberedRows.of(X, y, sample_weight, groups)
        self.method_ = self._pick_method(len(rows)) if self.method == "auto" else self.method
        self.regressor_, self.calibration_ = self._fitted(rows, self.method_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.regressor_, name):
                setattr(self, name, getattr(self.regressor_, name))
        self._warn_of_small_groups()
        return self

    def _fitted(self, rows: NumberedRows, method: str) -> tuple[Any, IntervalCalibration]:
        """Return the fitted regressor and the calibration."""
        make = partial(make_groups, self.by)
        if method == "prefit":
            check_is_fitted(self.regressor)
            return self.regressor, self._margins(self.regressor, rows, None)
        if method == "leave-one-out":
            return self._left_out(rows)
        if self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                f"method={method!r} cannot divide a matrix of kernel values, whose columns are training rows. "
                "Fit the regressor to some rows and use method='prefit' with the others, or use 'leave-one-out'."
            )
        if method == "split":
            some, held = rows.divided(self.calibration_share, self.random_state)
            regressor = some.fit(self.regressor)
            return regressor, self._margins(regressor, held, some)
        options = {"n_folds": self.n_folds, "random_state": self.random_state}
        regressor = rows.fit(self.regressor)
        return regressor, calibrate_folds(self.regressor, rows, make, self.coverage, **options)

    def _margins(self, regressor: Any, held: NumberedRows, fitted: NumberedRows | None) -> IntervalCalibration:
        """Calibrate with held-out rows; fitted rows, if there are any, divide the scales."""
        band = band_of(regressor, held.X, self.coverage)
        widths = band[:, 1] - band[:, 0]
        if fitted is not None and isinstance(self.by, str) and self.by == "scale":  # the held-out rows must not choose
            own = band_of(regressor, fitted.X, self.coverage)
            widths = own[:, 1] - own[:, 0]
        return calibrate_margins(band, held.X, held.y, make_groups(self.by, held.X, widths), self.coverage)

    def _left_out(self, rows: NumberedRows) -> tuple[Any, IntervalCalibration]:
        """Fit the regressor, and calibrate with its predictions of left-out rows."""
        if not isinstance(self.regressor, EmbeddingRegressor):
            raise ValueError(
                f"method='leave-one-out' needs an EmbeddingRegressor. Got {self.regressor!r}; use method='cross' or "
                "'split'."
            )
        regressor = rows.fit(self.regressor)
        band, y, known = regressor.left_out_band(self.coverage)
        if known is None and not (self.by is None or self.by == "scale"):
            raise ValueError(
                f"method='leave-one-out' with by={self.by!r} needs all rows to be left out, as with solver='exact'. "
                f"Here {len(y)} rows were, by solver={regressor.solver_!r}; use method='split'."
            )
        X = None if known is None else rows.subset(known).X
        return regressor, calibrate_margins(band, X, y, make_groups(self.by, X, band[:, 1] - band[:, 0]), self.coverage)

    def _pick_method(self, n_rows: int) -> str:
        few = n_rows <= FOLDS_UP_TO and not self.__sklearn_tags__().input_tags.pairwise
        if few and isinstance(innermost(self.regressor), EmbeddingRegressor):
            return "cross"
        return "leave-one-out" if isinstance(self.regressor, EmbeddingRegressor) else "split"

    def _warn_of_small_groups(self) -> None:
        groups, scores = self.calibration_.groups, self.calibration_.scores
        if found := too_small(groups, scores):
            what = "Too few calibration rows" if isinstance(groups, AllRows) else "Groups with too few calibration rows"
            warnings.warn(
                f"{what}: {', '.join(found[:10])}. Their intervals are infinite. A coverage of {self.coverage:g} needs "
                f"at least {int(np.ceil(self.coverage / (1 - self.coverage) - 1e-9))} rows; lower the coverage, or "
                "use larger groups.",
                CalibrationWarning,
                stacklevel=3,
            )

    @in_frames(the_ends)
    def interval(self, X: Any) -> np.ndarray:
        """Return the interval of each row, of shape (n, 2), within the range of the target that the regressor states.

        Without such a range, intervals of groups that have too few rows or none are infinite.
        """
        check_is_fitted(self)
        return self.calibration_.intervals(X, self.regressor_).clip(*range_of(self.regressor_))

    @in_frames()
    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers, as the regressor does."""
        check_is_fitted(self)
        return self.regressor_.predict(X)

    @available_if(lambda self: has_quantiles(self.regressor))
    @in_frames(lambda model, q: q)
    def quantile(self, X: Any, q: Any) -> np.ndarray:
        """Predict quantiles, as the regressor does, if it has them: these are not calibrated."""
        check_is_fitted(self)
        return quantiles_of(self.regressor_, X, q)

    def summary(self, X: Any, y: Any) -> IntervalSummary:
        """Count how often the intervals of new rows hold their targets, over all rows and by group.

        The record prints as a table.
        """
        rows = NumberedRows.of(X, y)
        limits, band = np.asarray(self.interval(rows.X)), band_of(self.regressor_, rows.X, self.coverage)
        groups = self.calibration_.groups
        return IntervalSummary.of(limits, rows.y, groups.indices(rows.X, band[:, 1] - band[:, 0]), groups.names)
