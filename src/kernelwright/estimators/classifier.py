"""The scikit-learn face of the multiclass conditional embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelwright.embedding.fitted import LeftOutRows
from kernelwright.estimators.arrows import (
    FitPlan,
    embedded_rows,
    embedding_of,
    fit_chunks,
    learn,
    prepare,
    solve,
    split,
)
from kernelwright.estimators.batches import add_rows, check_named, first_rows, has_features, widened
from kernelwright.estimators.calibrating import Calibrated, calibrate, complexity_of, risk_terms, warn_if_flipped
from kernelwright.estimators.checking import asked_for, check, plan_of, restarted, settings_of, starts_warm
from kernelwright.estimators.embedded import EMBEDDING_CONSTRAINTS, EmbeddingEstimator
from kernelwright.estimators.probabilities import ProbabilityClassifier, warn_of_bad_fit
from kernelwright.estimators.progress import progress
from kernelwright.estimators.refitting import refitted_losses
from kernelwright.estimators.streaming import RunningEmbedding
from kernelwright.features import FeatureMap
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.blocks import Chunks
from kernelwright.inputs.dataset import ClassInfo, Dataset
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Kernel
from kernelwright.learning import Choice, LearningMethod, Step, learning_method
from kernelwright.solvers import Explicit, Solution, Solver
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.bounds import LeftOutLoss
from kernelwright.uncertainty.risk import means_of_groups

__all__ = ["EmbeddingClassifier"]


@saved(
    "embedding-classifier",
    fields="classes_ class_weight_ embedding_ link_ complexity_ training_loss_ objective_ history_ "
    "n_iter_ batch_size_ _info _risk _holdout _refitted _asked _fitted_by",
)
class EmbeddingClassifier(ProbabilityClassifier, EmbeddingEstimator):
    """Class probabilities from a kernel that is learned from the data.

    A conditional mean embedding with one-hot targets [Hsu2018]_: kernel ridge regression whose kernel and ridge are
    chosen by gradient, in seconds, with no grid search, and whose outputs are turned into calibrated probabilities.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None, default=None
        ``None`` is the library's default for tables, :class:`kernelwright.kernels.Tabular`. With "precomputed", ``X``
        is the kernel matrix (at prediction: new rows against training rows). A learned kernel that may be indefinite is
        used through its features at landmarks (1000, or those of ``solver=Landmarks(n)``), negative eigenvalues
        flipped.
    features : FeatureMap or None, default=None
        An explicit feature map of :mod:`kernelwright.features` in place of a kernel: the work then grows linearly with
        the rows (Algorithm 2 of [Hsu2018]_), and :meth:`partial_fit` and :meth:`fit_batches` are there.
    learn : str, object of :mod:`kernelwright.learning` or None, default="auto"
        How hyperparameters are chosen: "auto" (the library's recipe), "rademacher" (the bound, Eq. 12), "held-out"
        (Eq. 13), "leave-one-out", "folds", "empirical-risk", "cross-validation" (a grid), "median", or ``None`` (as
        given). Words stand for objects with their default settings, such as ``Rademacher(complexity_weight="4e/n")``.
    solver : str or object of :mod:`kernelwright.solvers`, default="auto"
        How the embedding of all rows is held: "exact", "nystroem" (``Landmarks(n)``), "fourier", "herding", or "auto":
        exact up to 8000 rows, landmarks beyond.
    ridge : float or "auto", default="auto"
        lambda: the start value where it is learned, the value itself where it is not.
    probability : {"auto", "power", "softmax", "clip"} or estimator, default="auto"
        Map from raw outputs to probabilities; "power" ("auto") and "softmax" are fitted on leave-one-out outputs,
        "clip" is Eq. (6). A scikit-learn calibrator is fitted to the same outputs: a classifier to all of them at once,
        a regressor (``IsotonicRegression(out_of_bounds="clip")``) to those of each class.
    scale : {"auto", "standard", "unit", None}, default="auto"
        What is done to the inputs first. "auto" gives the default kernel its own views of a table and leaves the inputs
        of a given kernel untouched.
    class_weight : dict, "balanced" or None, default=None
        As in scikit-learn: multiplies the weights of the rows.
    warm_start : bool, default=False
        Start from the hyperparameters of the last fit, unless other kernels or features were set since then. With
        ``learn=None`` there is nothing to start: all is as given.
    callback : callable or None, default=None
        Called with a :class:`~kernelwright.learning.Step` after each step; raise ``StopIteration`` to stop.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        If positive, the log ``kernelwright`` has a line every so many steps.

    Attributes
    ----------
    classes_ : ndarray
    embedding_ : FittedEmbedding
        The solved embedding (:class:`kernelwright.embedding.fitted.FittedEmbedding`). Parts of it: ``kernel_`` (a copy
        of ``kernel`` with the learned numbers), ``features_``, ``ridge_``, ``scaler_``, ``prior_`` (what raw outputs
        return to far from all data), ``points_`` (distinct training points or landmarks as the kernel sees them),
        ``coefficients_`` (V of Eq. (5), or W of features), ``solver_`` (a word; "explicit" for features),
        ``n_landmarks_`` (points or features), ``precision_``, ``jitter_`` (what had to be added to the diagonal, with a
        :class:`~kernelwright.NumericalRepairWarning`).
    link_ : Link
        From raw outputs to probabilities. Parts of it: ``probability_map_``, ``class_prior_`` (class frequencies, which
        probabilities return to far from all data), ``trust_`` (in the model rather than in the class frequencies: one,
        but for tables of a few dozen rows in which luck cannot be told from signal).
    complexity_, objective_ : float
        The bound r of Eq. (11) at the end; the value of the objective that was learned by (NaN where there was none).
    history_ : list of Step
    n_iter_ : int
    batch_size_ : int or None
        Rows in a mini-batch, where there were mini-batches.
    n_features_in_, feature_names_in_

    Notes
    -----
    Weights are relative: a factor on all of them changes nothing. A row of weight two moves the embedding as two equal
    rows would, but it is one observation, and is left out as a whole; two equal rows are two, and are left out one at a
    time, unless ``groups`` says that they belong together. Equal rows of equal weight are merged (with ``features``, up
    to 5000 rows): cost is cubic, memory quadratic in the number of distinct rows while the solver is exact. With
    ``class_weight`` all probabilities are those of the weighted population; ``predict_proba(X, unweighted=True)`` gives
    those of rows as they come.

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
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> EmbeddingClassifier:
        """Learn the hyperparameters, solve the embedding on all rows and calibrate its probabilities.

        Parameters
        ----------
        X, y : array-like
            With ``features`` they may be Dask arrays or data frames: rows are summed up where they are.
        sample_weight : array-like of shape (n,), optional
            How much each row counts, relative to the others; rows of weight zero do not exist. Whatever its weight, a
            row is one observation: it is left out as a whole.
        groups : array-like of shape (n,), optional
            Names of groups of rows that belong together: copies, measurements of one patient, frames of one film.
            Wherever the model judges itself by rows left out (learning, calibration, support, bounds), it leaves out
            whole groups, and n in its formulas is the number of groups.
        """
        self._validate_params()
        with progress(self.verbose):
            plan = plan_of(self, warm=starts_warm(self, self.__dict__.pop("_asked", None)))
            rows, info, kept = check(self, plan, X, y, sample_weight, groups)
            plan = replace(plan, targets=ClassTargets(len(info.classes)))
            random, held = generator(self.random_state), None
            if isinstance(rows, Chunks):
                choice, running, embedded = fit_chunks(rows, plan, self.n_features_in_, random)
                solver, scaler, solution = Explicit(), running.scaler, running.solution()
                choice = replace(choice, ridge=running.ridge)
            else:
                parts = split(rows, plan)
                data = prepare(rows, parts, plan)
                plan = restarted(plan, self, data.scaler)
                solver, scaler = plan.solver_for(len(data.embedded)), data.scaler
                choice = learn(data.learned, plan, solver, random)
                solution = solve(choice, data.embedded, solver, random)
                embedded, held = embedded_rows(rows, parts, data, kept), rows.subset(parts.held)
            embedding = embedding_of(solution, choice, scaler=scaler, rows=embedded, solver=solver)
            self._keep(calibrate(solution, embedding, plan, self.probability), solution, plan, info)
            self._report(choice, held)
        return self

    def _keep(self, found: Calibrated, solution: Solution, plan: FitPlan, info: ClassInfo) -> None:
        """Keep what predictions and bounds need; warn of a fit that rows left out contradict."""
        self.classes_, self.class_weight_, self._info = info.classes, info.class_weight, info
        self.embedding_, self.link_ = found.embedding, found.link
        self.complexity_ = complexity_of(solution, plan, found.embedding)
        weighted = info.weighted or self.class_weight is not None
        self._risk = risk_terms(solution, found, plan, weighted=weighted)
        self.training_loss_ = self._risk.training_loss
        self._holdout = self._refitted = None
        rows = solution.left_out.rows
        warn_of_bad_fit((solution.fitted + found.shift).argmax(1), solution.fitted_rows, found.log_p, rows)
        if plan.explicit and self.features is None:
            warn_if_flipped(self.features_)

    def _report(self, choice: Choice, held: Dataset | None) -> None:
        """Keep how learning went, and the losses at rows that were kept from it."""
        self.objective_, self.history_, self.batch_size_ = choice.value, choice.history, choice.batch_size
        self.n_iter_ = max(len(choice.history), 1)
        if held is not None and len(held):
            losses = self._losses(*self.embedding_.outputs(held.X, held.points), self.classes_[held.y])
            self._holdout = losses if held.groups is None else means_of_groups(losses, held.groups)
        self._asked, self._fitted_by = asked_for(self.kernel, self.features), settings_of(self)

    @available_if(has_features)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to an embedding of explicit features, which needs only sums over all rows that it has seen.

        The first call learns the hyperparameters (and the scale of the inputs) from its rows, which should be a fair
        sample of some thousand, and takes all ``classes`` where these may not show all; later calls add their rows and
        solve again.
        """
        if "embedding_" in vars(self):
            running = add_rows(self, self._running(), X, y, sample_weight, unit=self._info.unit)
            return self._continued(running)
        check_named(y, classes)
        self.fit(X, y, sample_weight)
        if classes is None:
            return self
        running, self._info = widened(self._running(), self._info, classes, self.class_weight)
        return self._continued(running)

    @available_if(has_features)
    def fit_batches(self, batches: Iterable[tuple[Any, Any]], classes: Any = None) -> Self:
        """Fit explicit features to an iterator of (X, y) batches, which are never in memory all at once.

        Batches are gathered until there are 5000 rows and two classes; these decide the hyperparameters.

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
        return RunningEmbedding.of(self.embedding_, ClassTargets(len(self.classes_)), method.shrinks_to_frequencies)

    def _continued(self, running: RunningEmbedding) -> Self:
        """Solve an embedding with other sums, and calibrate it."""
        solution, info = running.solution(), replace(self._info, weighted=self._info.weighted or running.weighted)
        plan = replace(plan_of(self), targets=running.targets)
        embedding = running.embedding(self.embedding_, solution)
        self._keep(calibrate(solution, embedding, plan, self.probability), solution, plan, info)
        return self

    def without_each_row(self) -> LeftOutRows:
        """Return the leave-one-out models of an exact or explicit embedding, in closed form."""
        check_is_fitted(self)
        targets = ClassTargets(len(self.classes_)).encode(self.embedding_.rows.strata)
        return self.embedding_.without_each_row(targets)

    def _refitted_losses(self) -> tuple[dict[str, LeftOutLoss], int]:
        if self._fitted_by != settings_of(self):  # what other settings teach says nothing of this model
            return {}, 0
        if self._refitted is None:
            self._refitted = refitted_losses(self, ClassTargets(len(self.classes_)))
        return self._refitted
