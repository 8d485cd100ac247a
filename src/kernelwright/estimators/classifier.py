"""The scikit-learn face of the multiclass conditional embedding."""

from __future__ import annotations

import copy
import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
import torch
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from torch import Tensor, nn

from kernelwright.embedding.training_set import TrainingSet, smoothed_prior
from kernelwright.errors import NumericalRepairWarning
from kernelwright.estimators.base import (
    MERGE_UP_TO,
    refuse_if_too_large,
    warn_of_bad_fit,
    with_lines,
)
from kernelwright.estimators.batches import BatchFitting, EmbeddedRows, Rows, counted_groups, refuse_groups_of_chunks
from kernelwright.estimators.bounds import (
    HERDED,
    UNBOUNDED,
    WEIGHTED,
    BoundedRisk,
    RiskTerms,
    left_out_losses,
    means_of_groups,
)
from kernelwright.estimators.predictions import EmbeddingPredictions
from kernelwright.features.fourier import FeatureMap, fourier_features
from kernelwright.features.nystroem import Nystroem
from kernelwright.inputs.arrays import generator, seed_of, validate_data
from kernelwright.inputs.blocks import Block, Chunks, SlicedRows
from kernelwright.inputs.dask_rows import is_dask
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.kernels import FeatureKernel, Kernel, Precomputed
from kernelwright.kernels.vector import HasLengthScales
from kernelwright.learning.optimisers import Step
from kernelwright.learning.recipes import MANY, Settings, choose
from kernelwright.numerics.threads import threads_for
from kernelwright.similarity.indefinite import signature
from kernelwright.solvers.solvers import (
    LEARNED_FROM,
    LEFT_OUT_ROWS,
    Solution,
    choose_solver,
    exact,
    explicit,
    herding,
    nystroem,
    sum_up,
    usual_landmarks,
)
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.bounds import LeftOutLoss
from kernelwright.uncertainty.calibration import fit_map, fit_shifted_power, trust_in

__all__ = ["EmbeddingClassifier"]

FLIPPED_LANDMARKS = 1000  # of a kernel that may be indefinite
REFITTED_UP_TO, REFITTED_PARTS = 2000, 10  # rows and parts, for an estimate of the risk without what learning hides

LEARN = (
    "auto",
    "rademacher",
    "held-out",
    "leave-one-out",
    "folds",
    "empirical-risk",
    "cross-validation",
    "median",
)


@saved(
    "embedding-classifier",
    fields="classes_ class_weight_ class_prior_ prior_ scaler_ kernel_ features_ solver_ n_landmarks_ "
    "batch_size_ ridge_ objective_ complexity_ history_ n_iter_ points_ coefficients_ probability_map_ "
    "trust_ precision_ jitter_ training_loss_ _asked _fitted_by _holdout _moments _range _risk_terms "
    "_rows _support _warm _weight_unit _weighted",
)
class EmbeddingClassifier(BoundedRisk, BatchFitting, EmbeddingPredictions):
    """Class probabilities from a kernel that is learned from the data.

    A conditional mean embedding with one-hot targets [Hsu2018]_: kernel ridge regression whose kernel and ridge
    are chosen by gradient, in seconds, with no grid search, and whose outputs are turned into calibrated
    probabilities.

    Most users set at most ``random_state``, ``class_weight``, ``kernel``, ``features`` and ``n_landmarks``; the rest is
    for research on learning.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None, default=None
        ``None`` is the library's default for tables, :class:`kernelwright.kernels.Tabular`. With "precomputed",
        ``X`` is the kernel matrix (at prediction: new rows against training rows). A learned kernel that may be
        indefinite is used through its features with ``n_landmarks`` (1000) points, negative eigenvalues flipped.
    features : FeatureMap or None, default=None
        An explicit feature map of :mod:`kernelwright.features` in place of a kernel: the work then grows linearly with
        the rows (Algorithm 2 of [Hsu2018]_), and :meth:`partial_fit` and :meth:`fit_batches` are there.
    learn : str or None, default="auto"
        How hyperparameters are chosen: "rademacher" (the bound, Eq. 12), "held-out" (Eq. 13), "leave-one-out",
        "folds" (five), "empirical-risk", "cross-validation" (a grid), "median" (length scales at the median
        distance), ``None`` (as given) or "auto": leave-one-out with a small complexity term, first with equal length
        scales and then with one for each feature, on at most 800 rows (1200 and 2000 of very many).
    complexity_weight : float or str, default="auto"
        tau, the weight of the complexity against the mean loss: a number, "4e" (as printed in Eq. 12; collapses on
        most data, with a warning), "4e/n" (as in the published results), "4e/sqrt(n)", "1/n" or "auto".
    ridge : float or "auto", default="auto"
        lambda: the start value where it is learned, the value itself where it is not.
    optimizer : {"auto", "lbfgs", "adam"}, default="auto"
        L-BFGS-B on all rows, or Adam, which also takes mini-batches.
    batch_size : int or None, default=None
        Rows in a mini-batch; ``None`` is all rows, or about 1000 of them if there are more than 8000.
    batch_order : {"random", "sequential"}, default="random"
        Whether each mini-batch is drawn anew, or all rows are taken in turn, shuffled once an epoch.
    max_iter : int or None, default=None
        Most steps of the optimiser; ``None`` is the method's own number.
    learning_rate : float, default=0.1
        Of Adam.
    tol : float, default=1e-6
        L-BFGS-B stops when the objective changes by less (relative to its size).
    patience : int or None, default=None
        Adam stops when the objective has not fallen by ``tol`` for so many steps; ``None`` takes all steps.
    solver : {"auto", "exact", "nystroem", "fourier", "herding"}, default="auto"
        How the embedding of all rows is held: exactly; in the span of landmarks, by preconditioned conjugate gradients;
        by random Fourier features; by a weighted subset. "auto" is exact up to 8000 rows, landmarks beyond.
    n_landmarks : int or None, default=None
        Landmarks of "nystroem", features of "fourier", rows of "herding"; ``None`` is 4000 (half
        of the rows if these are fewer than 8000), beyond 80,000 rows one in 20, at most 7500, and fewer where memory is
        short.
    probability : {"auto", "power", "softmax", "clip"} or estimator, default="auto"
        Map from raw outputs to probabilities; "power" ("auto") and "softmax" are fitted on leave-one-out outputs,
        "clip" is Eq. (6). Any scikit-learn calibrator is fitted to the same outputs: a classifier
        (``LogisticRegression()``) to all of them at once, a regressor (``IsotonicRegression(out_of_bounds="clip")``) to
        those of each class.
    scale : {"auto", "standard", "unit", None}, default="auto"
        What is done to the inputs first. "auto" gives the default kernel its own views of a table and leaves the
        inputs of a given kernel untouched.
    precision : {"auto", "single", "double"}, default="auto"
        Of the kernel matrix that the final embedding is solved with. "single" halves its memory and takes less time;
        probabilities change in the sixth digit or so (with landmarks, which are not solved as far in it, in the third).
        Where the residual, checked in double, is too large for that, the embedding is solved again in double, with a
        :class:`~kernelwright.PrecisionWarning`. "auto" is double, and single with landmarks if there are more than 16
        million kernel values, and while a kernel is learned for more than 8000 rows. With "single", learning (but by
        "held-out", "folds", "cross-validation") has factors in single precision too. Solutions are refined to the
        residuals of double; the inverse that leave-one-out (and "auto") needs is good to five digits, or that step is
        done in double. Predictions have kernel values in single precision where the model was in the end solved in it.
        All else is in double in any case.
    class_weight : dict, "balanced" or None, default=None
        As in scikit-learn: multiplies the weights of the rows.
    kernel_share : float or None, default=None
        Share of the rows that the kernel, the ridge and the scale of the inputs are learned from, at random; the
        embedding is then solved on the *other* rows, so that :meth:`risk_bound` has its fixed-kernel form. ``None``
        takes all rows for both, which predicts better.
    holdout_share : float or None, default=None
        Share of the rows that are not fitted at all but kept for ``risk_bound("holdout")``, at random.
    warm_start : bool, default=False
        Start from the hyperparameters of the last fit, unless other kernels or features were set since then. With
        ``learn=None`` there is nothing to start: all is as given.
    callback : callable or None, default=None
        Called with a :class:`~kernelwright.learning.optimisers.Step` after each step; raise ``StopIteration`` to stop.
    device : {"auto", "cpu"}, default="auto"
        Kernels and feature maps are evaluated on the CPU (a network takes other devices:
        :class:`EmbeddingNetworkClassifier`).
    random_state : int, RandomState or None, default=None
        For samples and mini-batches. No global random state is used.
    verbose : int, default=0
        If positive, a line on standard error every so many steps.

    Attributes
    ----------
    classes_ : ndarray
    kernel_ : Kernel
        A copy of ``kernel`` with the learned numbers.
    ridge_ : float
    complexity_ : float
        The bound r of Eq. (11) at the end.
    objective_ : float
        Value of the objective that was learned by (NaN where there was none).
    history_ : list of Step
    n_iter_ : int
    prior_ : ndarray
        What the raw outputs return to far from all data: class frequencies (moved a little, with the probability map,
        to where leave-one-out outputs are best calibrated), or zeros where ``learn`` is one of the paper's methods.
    batch_size_ : int or None
        Rows in a mini-batch, where there were mini-batches.
    solver_ : str
        How the embedding is held ("explicit" where ``features`` are given).
    n_landmarks_ : int
        Number of points or features that the coefficients belong to.
    precision_ : {"single", "double"}
        Of the kernel matrix that the embedding was solved with.
    jitter_ : float
        What had to be added to the diagonal of the final system so that it could be factorised, with a
        :class:`~kernelwright.NumericalRepairWarning`; 0 where nothing had to be.
    points_, coefficients_ : ndarray
        Distinct training points (or landmarks) as the kernel sees them, and V of Eq. (5); with features, ``points_`` is
        empty and the coefficients are W.
    probability_map_ : ProbabilityMap
    class_prior_ : ndarray
        Class frequencies, which probabilities return to far from all data.
    trust_ : float
        How far the model is trusted more than the class frequencies: probabilities are a mixture of both. One, but for
        tables of a few dozen rows in which luck cannot be told from signal.
    n_features_in_, feature_names_in_

    Notes
    -----
    Weights are relative: a factor on all of them changes nothing. A row of weight two moves the embedding as two equal
    rows would, but it is one observation, and is left out as a whole; two equal rows are two, and are left out one at a
    time, unless ``groups`` says that they belong together. So a weight equals as many copies where nothing is left out
    (``learn=None`` with ``probability="clip"``), and where copies are in one group. Equal rows of equal weight are
    merged (with ``features``, up to 5000 rows): cost is cubic, memory quadratic in the number of distinct rows while
    the solver is exact.

    With ``class_weight`` all probabilities are those of the weighted population, in which each class is as frequent as
    its weight makes it; ``predict_proba(X, unweighted=True)`` gives those of rows as they come.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from kernelwright import EmbeddingClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = EmbeddingClassifier().fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    >>> model.predict_proba(X_test).shape
    (45, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [Kernel, StrOptions({"precomputed"}), None],
        "features": [FeatureMap, None],
        "learn": [StrOptions(set(LEARN)), None],
        "complexity_weight": [
            Interval(Real, 0, None, closed="left"),
            StrOptions({"auto", "4e", "4e/n", "4e/sqrt(n)", "1/n"}),
        ],
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "optimizer": [StrOptions({"auto", "lbfgs", "adam"})],
        "batch_size": [Interval(Integral, 2, None, closed="left"), None],
        "batch_order": [StrOptions({"random", "sequential"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"auto", "exact", "nystroem", "fourier", "herding"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "device": [StrOptions({"auto", "cpu"})],
        "probability": [StrOptions({"auto", "power", "softmax", "clip"}), HasMethods(["fit", "predict"])],
        "scale": [StrOptions({"auto", "standard", "unit"}), None],
        "precision": [StrOptions({"auto", "single", "double"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "kernel_share": [Interval(Real, 0, 1, closed="neither"), None],
        "holdout_share": [Interval(Real, 0, 1, closed="neither"), None],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    ridge_: float
    features_: FeatureMap | None

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        features: FeatureMap | None = None,
        learn: str | None = "auto",
        complexity_weight: float | str = "auto",
        ridge: float | str = "auto",
        optimizer: str = "auto",
        batch_size: int | None = None,
        batch_order: str = "random",
        max_iter: int | None = None,
        learning_rate: float = 0.1,
        tol: float = 1e-6,
        patience: int | None = None,
        solver: str = "auto",
        n_landmarks: int | None = None,
        probability: Any = "auto",
        scale: str | None = "auto",
        precision: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        kernel_share: float | None = None,
        holdout_share: float | None = None,
        warm_start: bool = False,
        callback: Callable[[Step], Any] | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.features = features
        self.learn = learn
        self.complexity_weight = complexity_weight
        self.ridge = ridge
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.batch_order = batch_order
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.tol = tol
        self.patience = patience
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.probability = probability
        self.scale = scale
        self.precision = precision
        self.class_weight = class_weight
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share
        self.warm_start = warm_start
        self.callback = callback
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # learning ------------------------------------------------------------------------------------------

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
        for name in ("_moments", "_refitted"):
            self.__dict__.pop(name, None)
        self._weight_unit = 1.0  # what a weight of one counts
        asked = self._asked_for()
        # From where the last fit ended, unless another kernel was asked for since then, or one just as it is given.
        self._warm = self.warm_start and self.learn is not None and self.__dict__.pop("_asked", None) == asked
        self._fit(X, y, sample_weight, groups)
        self._fitted_by = self._settings()
        self._asked = asked  # only now: what has failed is nothing to start from
        return self

    def _asked_for(self) -> str:
        """The kernel and features as they were given, with every number of theirs: a repr shows but some."""
        parts = (self.kernel, self.features)
        numbers = [part.state_dict() for part in parts if isinstance(part, nn.Module)]
        return repr(parts) + joblib.hash([[value.numpy() for value in state.values()] for state in numbers])

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        kernel = copy.deepcopy(self.kernel_) if self._warm else self._start_kernel()
        chunks: Chunks
        if is_dask(X):
            refuse_groups_of_chunks(groups)
            chunks = self._check_chunks(X, y, sample_weight)
            if len(chunks) > chunks.n_gathered:
                self._fit_chunks(kernel, chunks)
                return
            rows, kept = Rows.of(chunks.take(np.arange(len(chunks)))), np.ones(len(chunks), dtype=bool)
        else:
            rows, kept = self._check_training_data(kernel, X, y, sample_weight, groups)
            if self._sums_suffice() and rows.X is not None and groups is None:
                chunks = SlicedRows(Block(rows.X, rows.labels, rows.weights))
                if len(chunks) > chunks.n_gathered:
                    self._fit_chunks(kernel, chunks)
                    return
        learned, solved, held = self._split(rows)
        columns = getattr(self.scaler_, "columns_", None) if self._warm else None
        self.scaler_ = None
        data, place = self._gather(kernel, rows.subset(learned))
        if columns is not None and not np.array_equal(columns, self.scaler_.columns_):
            self._warm, kernel = False, self._start_kernel()  # other columns vary now: nothing to start from
        embedded = data
        if solved is not learned:
            embedded, place = self._gather(kernel, rows.subset(solved), prior=data.prior)
        in_embedding = np.zeros(len(kept), dtype=bool)
        in_embedding[np.flatnonzero(kept)[solved]] = True
        self._rows = EmbeddedRows.of(in_embedding, place, rows.weights[solved], embedded)
        random = generator(self.random_state)
        self._learn(kernel, data, len(embedded), random)
        self._solve(embedded, random)
        self._holdout = None
        if len(held):
            kept_apart = rows.subset(held)
            outputs, support = self._at_rows(kept_apart.X, kept_apart.points)
            losses = self._losses(outputs, support, self.classes_[kept_apart.labels])
            self._holdout = losses if kept_apart.groups is None else means_of_groups(losses, kept_apart.groups)
        if self._explicit and self.features is None:
            self._report_signature()

    def _split(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of the rows to learn the kernel from, to solve the embedding on, to keep for bounds.

        The first two are the same unless ``kernel_share`` says otherwise. Rows (or groups) are drawn plainly at random,
        not by class: bounds speak of independent rows.
        """
        everything, none = np.arange(len(rows.labels)), np.arange(0)
        if self.kernel_share is None and self.holdout_share is None:
            return everything, everything, none
        if rows.groups is None:
            return self._split_units(len(everything))
        names = np.unique(rows.groups)
        learned, solved, held = (
            np.flatnonzero(np.isin(rows.groups, names[part])) for part in self._split_units(len(names))
        )
        return learned, learned if self.kernel_share is None else solved, held

    def _split_units(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        order = torch.randperm(n, generator=generator(self.random_state)).numpy()
        n_held = round((self.holdout_share or 0.0) * n)
        held, used = np.sort(order[:n_held]), order[n_held:]
        if self.kernel_share is None:
            used = np.sort(used)
            return used, used, held
        n_learned = round(self.kernel_share * len(used))
        return np.sort(used[:n_learned]), np.sort(used[n_learned:]), held

    def _gather(self, kernel: Kernel, rows: Rows, prior: Tensor | None = None) -> tuple[TrainingSet, np.ndarray]:
        """Rows as a training set, equal ones merged, and the place of each of them in it.

        The rows that are gathered first, with no prior yet, decide the scale of the inputs.
        """
        if len(np.unique(rows.labels)) < 2:
            raise ValueError(
                f"Only one class is left among the {len(rows.labels)} rows that kernel_share={self.kernel_share} and "
                f"holdout_share={self.holdout_share} leave for a part of the fit. Choose shares with larger parts."
            )
        rows, place = rows.with_mean_weight_one(), np.arange(len(rows.labels))
        points = rows.points
        if points is None:
            if not self._explicit or len(rows.X) <= MERGE_UP_TO:
                rows, place = rows.merged()
            if prior is None:
                self.scaler_ = self._fit_scaler(rows.X, rows.weights)
            points = self._encode(kernel, rows.X)
        data = rows.training_set(points, len(self.classes_), prior)
        if prior is None and self.learn == "auto":
            data = replace(data, prior=smoothed_prior(data.targets, data.weights))
        return data, place

    def _report_signature(self) -> None:
        """Say how indefinite the kernel is: its negative eigenvalues were flipped."""
        features = self.features_
        assert isinstance(features, Nystroem)
        signs = signature(features.kernel.matrix(features.points))
        if not signs.definite:
            warnings.warn(
                f"The kernel is indefinite, and the embedding is that of the flipped one, by its features with "
                f"{len(features.points)} landmarks. Of the landmarks' kernel matrix: {signs}.",
                NumericalRepairWarning,
                stacklevel=3,
            )

    def _learn(self, kernel: Kernel, data: TrainingSet, n_rows: int, random: torch.Generator) -> None:
        """Learn the kernel and the ridge from ``data``, for an embedding of so many rows."""
        warm = self._warm
        self.solver_, self.n_landmarks_ = self._pick_solver(n_rows)
        settings = Settings(
            learn=self.learn,
            complexity_weight=self.complexity_weight,
            ridge=self.ridge_ if warm else self.ridge,
            optimizer=self.optimizer,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            batch_order=self.batch_order,
            tol=self.tol,
            patience=self.patience,
            precision=self.precision,
            callback=with_lines(self.callback, self.verbose),
            warm=warm,
            average=self.kernel is None and self.solver_ == "exact",
        )
        choice = choose(kernel, data, settings, random)
        self.kernel_, self.ridge_, self.objective_ = choice.kernel, choice.ridge, choice.value
        self.history_, self.n_iter_ = choice.history, max(len(choice.history), 1)
        self.batch_size_ = choice.batch_size

    def _start_kernel(self) -> Kernel:
        if self.features is None:
            kernel = super()._start_kernel()
            if not self._explicit:
                return kernel
            if self.solver not in ("auto", "nystroem"):
                raise ValueError(
                    f"A kernel that may be indefinite is used through landmarks: solver='nystroem' or 'auto'. "
                    f"Got {self.solver!r} instead."
                )
            landmarks, seed = self.n_landmarks or FLIPPED_LANDMARKS, seed_of(self.random_state)
            return FeatureKernel(Nystroem(kernel, landmarks, seed=seed))
        if self.kernel is not None:
            raise ValueError("Pass either a kernel or features, not both: features have a kernel of their own.")
        return FeatureKernel(copy.deepcopy(self.features))

    @property
    def _explicit(self) -> bool:
        """Whether the embedding is one of features: given ones, or those of a kernel that may be indefinite."""
        return self.features is not None or (isinstance(self.kernel, Kernel) and not self.kernel.definite)

    def _pick_solver(self, n_rows: int) -> tuple[str, int]:
        """The solver and its number of landmarks, said on standard error if ``verbose``."""
        if self._explicit:
            chosen = ("explicit", 0)
        elif self.solver == "auto" and self.kernel != "precomputed":
            chosen = choose_solver(n_rows, self.n_landmarks)
        else:
            size = self.n_landmarks or usual_landmarks(n_rows)
            size = size if self.solver == "fourier" else min(size, n_rows)
            chosen = ("exact", n_rows) if self.solver in ("auto", "exact") else (self.solver, size)
        if chosen[0] != "explicit":
            refuse_if_too_large(n_rows, *chosen, self._learned_from())
        if self.verbose:
            of = f", {chosen[1]} landmarks" if chosen[1] else ""
            sys.stderr.write(f"{n_rows} rows: solver {chosen[0]}{of}\n")
        return chosen

    def _learned_from(self) -> int:
        """Rows at most whose kernel matrix is held while hyperparameters are learned."""
        if self.learn == "auto":
            return LEARNED_FROM
        return 0 if self.learn in (None, "median") else self.batch_size or MANY

    def _check_training_data(
        self, kernel: Kernel, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Rows, np.ndarray]:
        """The rows that count, checked, and which rows those are (weight not zero)."""
        if kernel.takes_vectors or isinstance(kernel, Precomputed):
            finite_here = not isinstance(kernel, Precomputed)  # which says where its own gaps are
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=finite_here)
        else:
            X, y = np.asarray(X, dtype=object), column_or_1d(y)
            check_consistent_length(X, y)
        labels, weights, kept = self._check_labels(y, sample_weight)
        self._weighted = bool(np.ptp(weights) > 0)
        if not isinstance(self.class_weight, str):
            with np.errstate(over="ignore"):
                self._weight_unit = float(weights[0] / self._given(y, sample_weight)[kept][0])
        names = counted_groups(groups, kept)
        if not kernel.takes_vectors:
            return Rows(None, kernel.encode_training(X)[torch.from_numpy(kept)], labels, weights, names), kept
        return Rows(X if kept.all() else X[kept], None, labels, weights, names), kept

    def _fit_scaler(self, X: np.ndarray, weights: np.ndarray) -> Any:
        default = self.kernel is None and self.features is None
        scale = ("views" if default else None) if self.scale == "auto" else self.scale
        if default and scale != "views":
            raise ValueError(
                f"The default kernel makes its own views of a table and needs scale='auto'. Got {self.scale!r}; "
                "pass a kernel to use another scale."
            )
        return fit_scaler(scale, X, weights)

    def _solve(self, data: TrainingSet, random: torch.Generator) -> None:
        """The embedding of all rows at the hyperparameters that were chosen."""
        self.features_ = self.kernel_.features if isinstance(self.kernel_, FeatureKernel) else None
        size = self.n_landmarks_
        with torch.no_grad(), threads_for(len(data)):
            if self.solver_ == "exact":
                found = exact(self.kernel_, data, self.ridge_, precision=self.precision)
            elif self.solver_ == "nystroem":
                found = nystroem(self.kernel_, data, self.ridge_, size, random, precision=self.precision)
            elif self.solver_ == "herding":
                found = herding(self.kernel_, data, self.ridge_, size, random)
            else:
                if self.features_ is None:
                    seed = int(torch.randint(2**31 - 1, (1,), generator=random))
                    self.features_ = fourier_features(self.kernel_, size, data.points.shape[1], seed)
                moments, sample = sum_up(self.features_, data), data.whole_groups(LEFT_OUT_ROWS, random)
                found = explicit(moments, self.features_, sample, self.ridge_)
                self._range = (data.points.min(0).values, data.points.max(0).values)
            if self._explicit:
                self._moments = (moments, sample, len(data))
                alpha = self._feature_bound()
            else:
                alpha = math.sqrt(float(self.kernel_.sup_diag(data.points)))
        self._calibrate(found, alpha)

    def _calibrate(self, found: Solution, alpha: float) -> None:
        """Fit the probability map, and keep what prediction and bounds need."""
        name = "power" if isinstance(self.probability, str) and self.probability == "auto" else self.probability
        outputs, rows = found.left_out.outputs, found.left_out.rows
        shift = torch.zeros_like(rows.prior)
        frequencies = smoothed_prior(found.fitted_rows.targets, found.fitted_rows.weights)
        kept = frequencies if bool(rows.prior.any()) else None  # only where outputs are drawn to them
        with threads_for(0):  # many operations on few numbers
            # A shift would make the prior depend on rows that the fixed-kernel bound is about.
            if isinstance(name, str) and name == "power" and self.learn == "auto" and self.kernel_share is None:
                self.probability_map_, shift = fit_shifted_power(outputs, rows.targets, rows.weights, kept)
            else:
                self.probability_map_ = fit_map(name, outputs, rows.targets, rows.weights, kept)
        self.class_prior_, self.trust_ = frequencies.numpy(), 1.0
        if isinstance(name, str):
            untouched = self._link()(outputs + shift, found.left_out.support)
            self.trust_ = trust_in(untouched, rows.targets, rows.weights, self._n_rows())
        log_p = self._link()(outputs + shift, found.left_out.support)
        self.complexity_ = alpha * math.sqrt(found.squared_norm)
        self.prior_ = (rows.prior + shift).numpy()
        self.points_ = np.empty((0, 0)) if found.points is None else found.points.numpy()
        self.coefficients_, self._support = found.coefficients.numpy(), found.support
        self.n_landmarks_ = len(found.coefficients)
        self.precision_, self.jitter_ = found.precision, found.jitter
        self._risk_terms = RiskTerms.of(
            (found.fitted + shift, found.fitted_rows),
            (outputs + shift, log_p, rows),
            n_rows=self._n_rows(),
            prior=float(np.linalg.norm(self.prior_)),
            fixed_kernel=not self._warm and (self.kernel_share is not None or self._kernel_as_given()),
            faults=self._bound_faults(),
        )
        self.training_loss_ = self._risk_terms.training_loss
        warn_of_bad_fit((found.fitted + shift).argmax(1), found.fitted_rows, log_p, rows)

    def _refitted_losses(self) -> tuple[dict[str, LeftOutLoss], int]:
        """Losses at each part of the rows by all that the others teach: kernel, ridge and probabilities."""
        if self.solver_ != "exact" or len(self.points_) > REFITTED_UP_TO or self._given_matrix():
            return {}, 0
        if getattr(self, "_fitted_by", None) != self._settings():
            return {}, 0  # of a model that other settings would learn, nothing is known
        if not hasattr(self, "_refitted"):
            outputs, log_p, rows = self._without_parts(REFITTED_PARTS)
            self._refitted = left_out_losses(outputs, log_p, rows), min(REFITTED_PARTS, rows.n_units)
        return self._refitted

    def _settings(self) -> str:
        """All that decides what is learned from given rows."""
        aside = ("kernel", "features", "random_state", "callback", "verbose", "warm_start")
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in aside}
        return repr(sorted(settings.items())) + self._asked_for()

    def _given_matrix(self) -> bool:
        """Whether points are places in a matrix, or were learned from elsewhere: nothing to learn anew from."""
        return self.kernel == "precomputed" or self.kernel_share is not None

    def _without_parts(self, n_parts: int) -> tuple[Tensor, Tensor, TrainingSet]:
        """Outputs and log probabilities of all rows, each by a model of the rows that are not in its part."""
        points, V = torch.from_numpy(self.points_), torch.from_numpy(self.coefficients_)
        rows = self._rows.training_set(points, V).unmerged()
        folds = rows.random_parts(n_parts, generator(self.random_state))
        outputs, log_p = torch.zeros_like(rows.targets), torch.zeros_like(rows.targets)
        for fold in folds.unique():
            held = folds == fold
            some = rows.subset(~held)
            if isinstance(self.class_weight, str):  # balanced anew
                whole, part = (torch.bincount(each.strata, each.weights, len(self.classes_)) for each in (rows, some))
                some = replace(some, weights=some.weights * (whole / part.clamp(min=1e-300))[some.strata])
            if len(some.strata.unique()) < 2:
                outputs[held], log_p[held] = rows.prior, torch.log(smoothed_prior(some.targets, some.weights))
                continue
            outputs[held], log_p[held] = self._taught_by(some, rows.points[held])
        return outputs, log_p, rows

    def _taught_by(self, data: TrainingSet, new: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and log probabilities at new points by a model like this one, of other rows."""
        other = copy.copy(self)
        other.callback, other.verbose, other._warm = None, 0, False
        data = replace(data, weights=data.weights * (data.n_units / data.total_weight))
        if self.learn == "auto":
            data = replace(data, prior=smoothed_prior(data.targets, data.weights))
        random = generator(self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this model has given its own
            other._learn(self._start_kernel(), data, len(data), random)
            all_of_them, place = np.ones(len(data), dtype=bool), np.arange(len(data))
            other._rows = EmbeddedRows.of(all_of_them, place, data.weights.numpy(), data)
            other._solve(data, random)
        outputs, support = other._at_rows(None, new)
        return outputs, other._link()(outputs, support)

    def _n_rows(self) -> float:
        return self._moments[0].total if self._explicit else float(self._rows.weights.sum())

    def _kernel_as_given(self) -> bool:
        """Whether nothing about the kernel was taken from the rows."""
        if self.learn is not None or self.scaler_ is not None or not isinstance(self.kernel, Kernel):
            return False
        parts = (part for part in self.kernel.modules() if isinstance(part, HasLengthScales))
        return self.kernel.definite and not any(part.median for part in parts)

    def _predicts_in_single(self) -> bool:
        """Where that was asked for, and the solution has passed its check. Many landmarks alone are no reason."""
        return self.precision == "single" and self.precision_ == "single"

    def _bound_faults(self) -> tuple[str, ...]:
        """Why bounds from training rows are no guarantee, in sentences."""
        weighted = self.class_weight is not None or self._weighted
        herded, unbounded = self.solver_ == "herding", not self.kernel_.bounded
        return (WEIGHTED,) * weighted + (HERDED,) * herded + (UNBOUNDED,) * unbounded
