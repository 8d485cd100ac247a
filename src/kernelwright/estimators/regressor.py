"""The scikit-learn estimator of numbers with their whole distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from kernelwright.distributions.fitted import DistributionLink
from kernelwright.distributions.number_targets import NumberTargets
from kernelwright.distributions.options import Distribution, distribution_of
from kernelwright.estimators.arrows import (
    embedded_rows,
    embedding_of,
    has_fixed_kernel,
    learn,
    prepare,
    solve,
)
from kernelwright.estimators.checking import (
    asked_for,
    check_number_rows,
    plan_of,
    restarted,
    settings_of,
    start_of,
)
from kernelwright.estimators.chunked import described_rows, fit_chunks
from kernelwright.estimators.embedded import EMBEDDING_CONSTRAINTS
from kernelwright.estimators.importance import rows_apart
from kernelwright.estimators.mean_targets import with_means_that_pay
from kernelwright.estimators.number_streams import NumberStreams
from kernelwright.estimators.predicting import PredictsNumbers
from kernelwright.estimators.progress import progress
from kernelwright.estimators.regression import for_numbers, learned_from, target_scales
from kernelwright.estimators.row_split import RowSplit, split
from kernelwright.estimators.sources import rows_of
from kernelwright.estimators.spread import n_columns, spread_of, with_columns
from kernelwright.features import FeatureMap
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.blocks import Chunks
from kernelwright.inputs.dataset import Dataset
from kernelwright.kernels import Kernel
from kernelwright.learning import Choice, LearningMethod, Step
from kernelwright.solvers import Solver
from kernelwright.storage.saved import saved

__all__ = ["EmbeddingRegressor"]


@saved(
    "embedding-regressor",
    fields="embedding_ links_ targets_ left_out_ objective_ history_ n_iter_ batch_size_ reader_ centre_ "
    "compression_ _info _asked _fitted_by _holdout _fixed_kernel _growing_rows",
    transient={"_apart": None, "_growth": None, "_first": None},
)
class EmbeddingRegressor(NumberStreams, PredictsNumbers):
    """A regressor that predicts the whole distribution of a number, with a kernel that is learned from the data.

    Kernel ridge regression whose kernel and ridge are learned by leave-one-out in closed form gives the mean; more
    columns of the same embedding give the distribution (:mod:`kernelwright.distributions`). No grid search is needed.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None, default=None
        ``None`` is the default for tables, :class:`kernelwright.kernels.Tabular`, or for sparse matrices,
        :class:`kernelwright.kernels.Angular`.
    features : FeatureMap or None, default=None
        An explicit feature map instead of a kernel; the cost is then linear in the number of rows.
    learn : str, object of :mod:`kernelwright.learning` or None, default="auto"
        How hyperparameters are chosen. Losses at left-out rows are half the logarithm of the mean squared error;
        "rademacher" and "empirical-risk" use the squared error clipped at three standard deviations of the target.
    solver : str or object of :mod:`kernelwright.solvers`, default="auto"
        How the embedding of all rows is solved, as in :class:`EmbeddingClassifier`.
    ridge : float or "auto", default="auto"
        lambda: the initial value if it is learned, otherwise the value itself.
    scale : {"auto", "standard", "unit", None}, default="auto"
        Scaling of the inputs. Targets are always standardised.
    distribution : str or object of :mod:`kernelwright.distributions`, default="auto"
        "location-scale" (a mean and a scale for each row, one shape for all), "direct" (the distribution function at
        many thresholds, learned by the CRPS), or "stacked" ("auto"): a mixture of both with the least leave-one-out
        CRPS. The objects have settings: the range of the target, its transform, whether it is discrete.
    categorical, keep
        As in :class:`EmbeddingClassifier`.
    warm_start, callback, random_state, verbose
        As in :class:`EmbeddingClassifier`.

    Attributes
    ----------
    embedding_ : FittedEmbedding
        Locations, logarithms of scales and, if it has a weight, the direct estimate, as columns of one embedding. Parts
        of it: ``kernel_``, ``ridge_`` (of the locations), ``points_``, ``coefficients_``, ``solver_``, ...
    links_ : tuple of DistributionLink
        For each target the map from outputs to its distribution: ``scale`` (transform, range, values), ``shape``,
        ``direct`` (the weight of the direct estimate), ``trust``.
    left_out_ : tuple of LeftOutTarget
        For each target the leave-one-out outputs that the distribution was fitted to.
    columns_, objective_, history_, n_iter_, batch_size_, n_features_in_, feature_names_in_

    Notes
    -----
    Far from all training rows, predictions approach the distribution of all targets, and :meth:`support` is near zero.
    ``score`` is R^2. Rows without a target are left out with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import EmbeddingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * (2 + X[:, 0]) * rng.normal(size=300)  # the noise grows with x
    >>> model = EmbeddingRegressor(random_state=0).fit(X[:200], y[:200])
    >>> mean, std = model.predict([[-1.5], [1.5]], return_std=True)
    >>> bool(std[0] < 0.12 < 0.25 < std[1])
    True
    >>> inside = [low <= t <= high for (low, high), t in zip(model.interval(X[200:]), y[200:])]
    >>> bool(0.8 < np.mean(inside) <= 1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = EMBEDDING_CONSTRAINTS | {"distribution": "no_validation"}

    links_: tuple[DistributionLink, ...]
    targets_: NumberTargets

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        features: FeatureMap | None = None,
        learn: LearningMethod | str | None = "auto",
        solver: Solver | str = "auto",
        ridge: float | str = "auto",
        scale: str | None = "auto",
        distribution: Distribution | str = "auto",
        categorical: str | Sequence[Any] | None = "from_dtype",
        keep: Sequence[Any] = (),
        warm_start: bool = False,
        callback: Callable[[Step], Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.features = features
        self.learn = learn
        self.solver = solver
        self.ridge = ridge
        self.scale = scale
        self.distribution = distribution
        self.categorical = categorical
        self.keep = keep
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, checkpoint: Any = None) -> Self:
        """Learn the hyperparameters, solve the embedding on all rows and fit the distribution to left-out rows.

        Parameters
        ----------
        X : array-like
            It may be a data frame of pandas, polars or pyarrow, with columns of any kind, or a Dask collection. Not all
            in memory: a source of :mod:`kernelwright.inputs`, such as ``ParquetRows("big/*.parquet", "y")``, without y.
        y : array-like of shape (n,) or (n, k)
            Numbers; several targets share the kernel. Rows with a gap are left out.
        sample_weight : array-like of shape (n,), optional
            Relative row weights. Rows of weight zero are ignored.
        groups : array-like of shape (n,), optional
            Group labels of rows that belong together. Wherever rows are left out, whole groups are left out.
        checkpoint : path, optional
            Folder in which a fit of a source keeps what is done. The same fit goes on from there after it was killed.
        """
        self._validate_params()
        how = distribution_of(self.distribution, type(self).__name__)
        with progress(self.verbose), rows_of(self, X, y, sample_weight, checkpoint) as (X, y, sample_weight, seed):
            plan = replace(plan_of(self, **start_of(self, X)), random_state=seed)
            rows, info, kept = check_number_rows(self, plan, X, y, sample_weight, groups)
            random, held, apart = generator(seed), None, None
            parts = RowSplit.nothing() if isinstance(rows, Chunks) else split(rows, plan.method, plan.random_state)
            sample = described_rows(rows, parts)
            targets = NumberTargets.of(target_scales(sample, plan, how, random), sample.y)
            plan = for_numbers(plan, targets)
            if isinstance(rows, Chunks):
                found = fit_chunks(rows, plan, self.n_features_in_, random, more=n_columns(targets, how))
                choice, solution, scaler, more = found.choice, found.solution, found.scaler, found.more
                embedded, solver = found.rows, found.solver
            else:
                data = prepare(rows, parts, with_means_that_pay(rows, parts, plan))
                plan = for_numbers(restarted(plan, self, data.scaler), targets)
                solver, scaler = plan.solver_for(len(data.embedded), data.embedded.points), data.scaler
                choice = learn(*learned_from(data.learned, plan, how), solver, random)
                data = plan.heeded(choice, data, random)
                solver = plan.settled(solver, choice, data.embedded, random)
                solution = solve(choice, data.embedded, solver, random)
                more = partial(solver.more, choice.kernel, solution)
                embedded, held = embedded_rows(rows, parts, data, kept), rows.subset(parts.held)
                apart = rows_apart(X, y, kept, parts.held)
            embedding = embedding_of(solution, choice, scaler=scaler, rows=embedded, solver=solver)
            spread = spread_of(choice.kernel, solution, more, targets, how)
            self.embedding_ = with_columns(embedding, spread)
            self.links_, self.left_out_, self.targets_, self._info = spread.links, spread.left_out, targets, info
            self._fixed_kernel = has_fixed_kernel(plan, scaler)
            self._report(choice, held, apart)
        return self

    def _report(self, choice: Choice, held: Dataset | None, apart: Any) -> None:
        """Store the learning history, predictions of held-out rows, and these rows as given."""
        self.objective_, self.history_, self.n_iter_ = choice.value, choice.history, max(len(choice.history), 1)
        self.batch_size_ = choice.batch_size
        self._asked, self._fitted_by, self._apart = asked_for(self.kernel, self.features), settings_of(self), apart
        self._growing_rows = self._growth = self._first = None
        self._holdout = None
        if held is not None and len(held):
            means = self._means(*self.embedding_.outputs(held.X, held.points))
            self._holdout = (means, held.y, held.groups)
