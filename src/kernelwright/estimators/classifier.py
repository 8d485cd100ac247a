"""The scikit-learn estimator of the multiclass conditional embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from kernelwright.embedding.fitted import LeftOutRows
from kernelwright.estimators.arrows import FitPlan, embedded_rows, embedding_of, learn, prepare, solve
from kernelwright.estimators.bad_fit import warn_of_bad_fit
from kernelwright.estimators.calibrating import Calibrated, calibrate, complexity_of, judge, risk_terms, warn_if_flipped
from kernelwright.estimators.checking import asked_for, check, plan_of, restarted, settings_of, start_of
from kernelwright.estimators.chunked import fit_chunks
from kernelwright.estimators.class_streams import ClassStreams
from kernelwright.estimators.compressing import ClassesCompressed
from kernelwright.estimators.embedded import EMBEDDING_CONSTRAINTS, EmbeddingEstimator
from kernelwright.estimators.importance import rows_apart
from kernelwright.estimators.mean_targets import with_means_that_pay
from kernelwright.estimators.probabilities import ProbabilityClassifier
from kernelwright.estimators.progress import progress
from kernelwright.estimators.refitting import refitted_losses
from kernelwright.estimators.row_split import split
from kernelwright.estimators.sources import rows_of
from kernelwright.features import FeatureMap
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.blocks import Chunks
from kernelwright.inputs.dataset import ClassInfo, Dataset
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Kernel
from kernelwright.learning import Choice, LearningMethod, Step
from kernelwright.solvers import Solution, Solver
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.bounds import LeftOutLoss
from kernelwright.uncertainty.risk import means_of_groups

__all__ = ["EmbeddingClassifier"]


@saved(
    "embedding-classifier",
    fields="classes_ class_weight_ embedding_ link_ complexity_ training_loss_ objective_ history_ "
    "n_iter_ batch_size_ reader_ centre_ compression_ _info _risk _holdout _refitted _asked _fitted_by _growing_rows",
    transient={"_apart": None, "_growth": None, "_first": None},
)
class EmbeddingClassifier(ClassStreams, ProbabilityClassifier, ClassesCompressed, EmbeddingEstimator):
    """A classifier with calibrated probabilities and a kernel that is learned from the data.

    It is a conditional mean embedding with one-hot targets [Hsu2018]_: kernel ridge regression whose kernel and ridge
    are learned by gradient, in seconds and without a grid search. Its outputs become calibrated probabilities.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None, default=None
        ``None`` is the default for tables, :class:`kernelwright.kernels.Tabular` (for sparse ones ``Angular``). With
        "precomputed", ``X`` is the kernel matrix (at prediction: new rows against training rows). A learned kernel that
        may be indefinite is used through features at landmarks (1000, or those of ``solver=Landmarks(n)``), with
        negative eigenvalues flipped.
    features : FeatureMap or None, default=None
        A map of :mod:`kernelwright.features` instead of a kernel. The cost is then linear in the number of rows
        (Algorithm 2 of [Hsu2018]_), and :meth:`partial_fit` and :meth:`fit_batches` are available.
    learn : str, object of :mod:`kernelwright.learning` or None, default="auto"
        How hyperparameters are chosen: "auto" (the library's recipe), "rademacher" (the bound, Eq. 12), "held-out"
        (Eq. 13), "leave-one-out", "folds", "empirical-risk", "cross-validation" (a grid), "median", or ``None``.
        Strings are short forms of objects, such as ``Rademacher(complexity_weight="4e/n")``.
    solver : str or object of :mod:`kernelwright.solvers`, default="auto"
        How the embedding of all rows is solved: "exact", "tree", "nystroem" (``Landmarks(n)``), "fourier", "herding",
        or "auto": exact up to 8000 rows; beyond, landmarks or a tree, as held-out rows decide; a tree from 20,000 on.
    ridge : float or "auto", default="auto"
        lambda: the initial value if it is learned, otherwise the value itself.
    probability : {"auto", "power", "softmax", "clip"} or estimator, default="auto"
        Map from raw outputs to probabilities. "power" and "softmax" are fitted to leave-one-out outputs; "clip" is
        Eq. (6). "auto" is "power", with the default kernel pooled with a logistic regression if that lowers the
        left-out log loss. Calibrators of scikit-learn are fitted to the same outputs: classifiers to all classes,
        regressors (``IsotonicRegression(out_of_bounds="clip")``) to each.
    scale : {"auto", "standard", "unit", None}, default="auto"
        Scaling of the inputs. "auto" gives the default kernel its own views of a table, and does not scale the inputs
        of a given kernel.
    class_weight : dict, "balanced" or None, default=None
        As in scikit-learn: multiplies the row weights.
    categorical : "from_dtype", None or list of columns, default="from_dtype"
        Columns of a data frame that are categories although they hold numbers. Text and categorical columns always are.
    keep : list of columns, default=()
        Columns of a data frame that are used although they would be left out, such as identifiers.
    warm_start : bool, default=False
        Start from the learned hyperparameters of the last fit, unless ``kernel`` or ``features`` has changed.
    callback : callable or None, default=None
        Called with a :class:`~kernelwright.learning.Step` after each step; raise ``StopIteration`` to stop.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        If positive, write a line to the log ``kernelwright`` every ``verbose`` steps.

    Attributes
    ----------
    classes_ : ndarray
    embedding_ : FittedEmbedding
        The solved embedding (:class:`kernelwright.embedding.fitted.FittedEmbedding`). Parts of it: ``kernel_`` (a copy
        of ``kernel`` with the learned parameters), ``features_``, ``ridge_``, ``scaler_``, ``prior_`` (the raw outputs
        far from all data), ``points_`` (distinct training points or landmarks as the kernel sees them),
        ``coefficients_`` (V of Eq. (5), or W of features), ``solver_`` (its short form; "explicit" for features),
        ``n_landmarks_`` (number of points or features), ``precision_``, ``jitter_`` (number added to the diagonal, with
        a :class:`~kernelwright.NumericalRepairWarning`).
    link_ : Link
        The map from raw outputs to probabilities, perhaps with a line. Parts of it: ``probability_map_``,
        ``class_prior_`` (the class frequencies: the probabilities far from all data), ``trust_`` (the weight of the
        model against these: one, except for tables of a few dozen rows where signal may be chance).
    complexity_, objective_ : float
        The bound r of Eq. (11), and the value of the learning objective (NaN if there was none), after the fit.
    history_ (list of Step), n_iter_, batch_size_, n_features_in_, feature_names_in_, columns_ (what was done to each)

    Notes
    -----
    Row weights are relative. A row of weight two has the same effect on the embedding as two equal rows, but it is one
    observation and is left out as a whole; two equal rows are left out one at a time, unless ``groups`` joins them.
    With the exact solver, cost is cubic and memory quadratic in the number of distinct rows. With ``class_weight``,
    probabilities are those of the weighted population; ``predict_proba(X, unweighted=True)`` gives the others.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelwright import EmbeddingClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = EmbeddingClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95), model.predict_proba(X[1::2]).shape
    (True, (89, 3))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = EMBEDDING_CONSTRAINTS | {
        "probability": [StrOptions({"auto", "power", "softmax", "clip"}), HasMethods(["fit", "predict"])],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    _refitted: tuple[dict[str, LeftOutLoss], int] | None

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        features: FeatureMap | None = None,
        learn: LearningMethod | str | None = "auto",
        solver: Solver | str = "auto",
        ridge: float | str = "auto",
        probability: Any = "auto",
        scale: str | None = "auto",
        class_weight: dict[Any, float] | str | None = None,
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
        self.probability = probability
        self.scale = scale
        self.class_weight = class_weight
        self.categorical = categorical
        self.keep = keep
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, checkpoint: Any = None) -> Self:
        """Learn the hyperparameters, solve the embedding on all rows and calibrate its probabilities.

        Parameters
        ----------
        X, y : array-like
            X may be a data frame of pandas, polars or pyarrow, with columns of any kind; both may be Dask collections.
            Not all in memory: a source of :mod:`kernelwright.inputs`, such as ``ParquetRows("big/*.parquet", "y")``.
        sample_weight : array-like of shape (n,), optional
            Relative row weights. Rows of weight zero are ignored.
        groups : array-like of shape (n,), optional
            Group labels of rows that belong together: wherever rows are left out, whole groups are; n is their number.
        checkpoint : path, optional
            Folder in which a fit of a source keeps what is done. The same fit goes on from there after it was killed.
        """
        self._validate_params()
        with progress(self.verbose), rows_of(self, X, y, sample_weight, checkpoint) as (X, y, sample_weight, seed):
            plan = replace(plan_of(self, **start_of(self, X)), random_state=seed)
            rows, info, kept = check(self, plan, X, y, sample_weight, groups)
            plan = replace(plan, targets=ClassTargets(len(info.classes)))
            random, held, apart = generator(seed), None, None
            if isinstance(rows, Chunks):
                found = fit_chunks(rows, plan, self.n_features_in_, random)
                choice, solution, scaler = found.choice, found.solution, found.scaler
                embedded, solver = found.rows, found.solver
            else:
                parts = split(rows, plan.method, plan.random_state)
                data = prepare(rows, parts, with_means_that_pay(rows, parts, plan))
                plan = restarted(plan, self, data.scaler)
                solver, scaler = plan.solver_for(len(data.embedded), data.embedded.points), data.scaler
                choice = learn(data.learned, plan, solver, random)
                data = plan.heeded(choice, data, random)
                solver = plan.settled(solver, choice, data.embedded, random)
                solution = solve(choice, data.embedded, solver, random)
                embedded, held = embedded_rows(rows, parts, data, kept), rows.subset(parts.held)
                apart = rows_apart(X, y, kept, parts.held)
            embedding = embedding_of(solution, choice, scaler=scaler, rows=embedded, solver=solver)
            self._keep(calibrate(solution, embedding, plan, self.probability), solution, plan, info)
            self._report(choice, held, apart)
        return self

    def _keep(self, found: Calibrated, solution: Solution, plan: FitPlan, info: ClassInfo) -> None:
        """Store what predictions and bounds need; warn if leave-one-out predictions contradict the fit."""
        self.classes_, self.class_weight_, self._info = info.classes, info.class_weight, info
        self.embedding_, self.link_ = found.embedding, found.link
        self.complexity_ = complexity_of(solution, plan, found.embedding)
        self._risk = risk_terms(solution, found, plan, weighted=info.weighted or self.class_weight is not None)
        self.training_loss_ = self._risk.training_loss
        self._holdout = self._refitted = self._apart = None
        fitted, left_out = (solution.fitted + found.shift).argmax(1), solution.left_out.rows
        warn_of_bad_fit(fitted, solution.fitted_rows, found.log_p, left_out)
        if plan.explicit and self.features is None:
            warn_if_flipped(self.features_)

    def _report(self, choice: Choice, held: Dataset | None, apart: Any) -> None:
        """Store the learning history, the losses at held-out rows, and these rows as given."""
        self.objective_, self.history_, self.n_iter_ = choice.value, choice.history, max(len(choice.history), 1)
        self.batch_size_ = choice.batch_size
        if held is not None and len(held):
            losses = self._losses(*judge(self.embedding_, self.link_, held), self.classes_[held.y])
            self._holdout = losses if held.groups is None else means_of_groups(losses, held.groups)
        self._asked, self._fitted_by, self._apart = asked_for(self.kernel, self.features), settings_of(self), apart
        self._growing_rows = self._growth = self._first = None

    def without_each_row(self) -> LeftOutRows:
        """Return the leave-one-out models of an exact or explicit embedding, in closed form."""
        check_is_fitted(self)
        return self.embedding_.without_each_row(ClassTargets(len(self.classes_)).encode(self.embedding_.rows.strata))

    def _refitted_losses(self) -> tuple[dict[str, LeftOutLoss], int]:
        if self._fitted_by != settings_of(self):  # refits with other settings say nothing about this model
            return {}, 0
        if self._refitted is None:
            self._refitted = refitted_losses(self, ClassTargets(len(self.classes_)))
        return self._refitted
