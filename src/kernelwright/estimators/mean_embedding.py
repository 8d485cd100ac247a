"""The scikit-learn estimator of the conditional mean embedding, for targets that are numbers, vectors or labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kernelwright.estimators.any_target import AnyTargetPlan, fit_any_target
from kernelwright.estimators.base import COLUMN_CONSTRAINTS, part_of
from kernelwright.estimators.target_weights import TargetWeights
from kernelwright.inputs.any_targets import check_any_rows
from kernelwright.inputs.frames.given_rows import GivenRows, training_rows
from kernelwright.kernels import Kernel, Precomputed
from kernelwright.learning import METHODS, LearningMethod, learning_method
from kernelwright.solvers import Exact, Solver, solver_of
from kernelwright.storage.saved import saved

__all__ = ["ConditionalMeanEmbedding"]


@saved(
    "conditional-mean-embedding",
    fields="targets_ target_space_ embedding_ objective_ complexity_ history_ n_iter_ reader_ centre_ _held _fixed",
)
class ConditionalMeanEmbedding(TargetWeights):
    """The whole conditional distribution of a target, as weights on the training rows.

    ``E[g(Y) | X = x]`` is estimated by ``sum_i w_i(x) g(y_i)`` for any function g, with the weights
    ``w(x) = (K + n ridge I)^-1 k(x)``: Eq. (2) of [Hsu2018]_. So one fit gives means, moments, probabilities of events,
    quantiles and samples.

    The kernel and the ridge are learned by the embedding's own validation loss, the mean of
    ``|l(y_i, .) - mu_{-i}(x_i)|^2`` in the space of the target kernel l [Grunewalder2012]_, in closed form. With
    :class:`~kernelwright.kernels.Brownian` as l, that is the CRPS of numbers and the energy score of vectors.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None, default=None
        ``None`` is the library's default for tables, :class:`kernelwright.kernels.Tabular`, on its own views of the
        columns. The inputs of a given kernel are not scaled. With "precomputed", ``X`` is the kernel matrix (at
        prediction: new rows against training rows).
    ridge : float or "auto", default="auto"
        lambda: the initial value if it is learned, otherwise the value itself (then "auto" is 0.01).
    learn : str, object of :mod:`kernelwright.learning` or None, default="auto"
        How hyperparameters are chosen, by the loss above. "leave-one-out": each row by the embedding of all others.
        "folds": each fold by the embedding of the other folds. "auto": the library's recipe, leave-one-out on a sample
        of 800 to 2000 rows. "rademacher": the training loss and a complexity term, as in Eq. (12) of [Hsu2018]_.
        "held-out": the loss on half of the rows by the embedding of the others, as in Eq. (13). "empirical-risk": the
        training loss alone. "cross-validation": a grid. "median": length scales at the median distance. ``None``:
        nothing is learned. Strings are short forms of objects with default settings, such as ``Folds(5)``.
    solver : str or object of :mod:`kernelwright.solvers`, default="auto"
        "exact", or "nystroem" (``Landmarks(n)``): the span of n landmarks, 2000 unless given, so that time and
        predictions do not grow with the square of the rows. "auto" is exact up to 8000 rows. With landmarks and more
        than 1000 distinct targets, :meth:`quantile`, :meth:`sample` and :meth:`losses` use representatives of them:
        1000 bins of numbers, 500 vectors or strings. Always in double precision.
    target_kernel : Kernel or None, default=None
        The kernel l between targets. It defines the loss of learning and the space of :meth:`sample`; it is not
        learned, and :meth:`expectation` and :meth:`quantile` do not use it. ``None`` is a Gaussian at the median
        distance between standardised numbers, and the Kronecker delta between labels. A given kernel sees the unscaled
        targets.
    prior : {"marginal", "zero"}, default="marginal"
        The embedding far from all data. With "marginal", the missing mass of the weights is shared equally by all
        training rows: weights sum to one, and a constant added to g is added to its expectation. "zero" is exactly
        Eq. (2): all weights, and so all expectations, shrink to zero.
    categorical, keep
        As in :class:`EmbeddingClassifier`, for data frames.
    random_state : int, RandomState or None, default=None
        For the sample of rows that "auto" learns from, landmarks, and rows set apart. No global random state is used.

    Attributes
    ----------
    embedding_ : FactorisedEmbedding or LandmarkEmbedding
        The solved embedding. Parts of it: ``kernel_`` (a copy of ``kernel`` with the learned parameters), ``ridge_``,
        ``scaler_``, ``points_`` (distinct training rows, or landmarks, as the kernel sees them), ``factor_`` (the
        Cholesky factor of ``K + n ridge I``, or of the landmarks' normal equations), ``jitter_`` (number added to the
        diagonal so that it could be factorised, with a :class:`~kernelwright.NumericalRepairWarning`).
    target_space_ : TargetSpace
        The distinct targets, ``values_`` (sorted), and the kernel between them, ``target_kernel_``.
    targets_ : ndarray
        The training targets, in the order of the rows of ``X`` (those that the embedding was solved on, if the learning
        method sets some apart by ``kernel_share`` or ``holdout_share``).
    classes_ : ndarray
        The labels; only if the targets are labels.
    objective_ : float
        Value of the learning objective (NaN if there was none).
    complexity_ : float
        The bound r of Eq. (11) of [Hsu2018]_ on the complexity, in the space of the target kernel.
    history_ : list of Step
    n_iter_ : int
    n_features_in_, feature_names_in_, columns_

    Notes
    -----
    Targets are labels if they are strings, booleans, a pandas categorical or of dtype object; integers are numbers.
    Equal rows with equal targets are merged and counted. The cost of an exact solution is cubic in the number of
    distinct rows; memory and the size of a pickle are quadratic.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import ConditionalMeanEmbedding
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = ConditionalMeanEmbedding().fit(X, y)
    >>> X_new = [[-0.5], [0.0], [0.5]]
    >>> bool(np.abs(model.expectation(X_new) - [-0.997, 0.0, 0.997]).max() < 0.1)
    True
    >>> positive = model.expectation(X_new, lambda y: y > 0)  # the probability of a positive target
    >>> bool(positive[0] < 0.3 < 0.7 < positive[2])
    True
    >>> model.quantile(X_new, [0.1, 0.9]).shape, model.sample(X_new, 20).shape
    ((3, 2), (3, 20))
    >>> bool(model.score(X, y) > 0.8)  # the share of the variance that is explained
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = COLUMN_CONSTRAINTS | {
        "kernel": [Kernel, StrOptions({"precomputed"}), None],
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "learn": [LearningMethod, StrOptions(set(METHODS)), None],
        "solver": [Solver, StrOptions({"auto", "exact", "nystroem"})],
        "target_kernel": [Kernel, None],
        "prior": [StrOptions({"zero", "marginal"})],
        "random_state": ["random_state"],
    }

    kernel_, scaler_, ridge_ = (part_of("embedding_", name) for name in ("kernel", "scaler", "ridge"))
    points_, factor_, jitter_ = (part_of("embedding_", name) for name in ("points", "factor", "jitter"))
    values_, target_kernel_ = (part_of("target_space_", name) for name in ("values", "kernel"))
    target_scaler_ = part_of("target_space_", "scaler")

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        ridge: float | str = "auto",
        learn: LearningMethod | str | None = "auto",
        solver: Solver | str = "auto",
        target_kernel: Kernel | None = None,
        prior: str = "marginal",
        categorical: str | Sequence[Any] | None = "from_dtype",
        keep: Sequence[Any] = (),
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.learn = learn
        self.solver = solver
        self.target_kernel = target_kernel
        self.prior = prior
        self.categorical = categorical
        self.keep = keep
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, Y: Any) -> ConditionalMeanEmbedding:
        """Learn the hyperparameters and factorise the embedding of all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs; a list of strings if the kernel takes strings.
        Y : array-like of shape (n,) or (n, p)
            Real numbers, vectors or labels.
        """
        self._validate_params()
        plan = self._plan()
        given = isinstance(plan.kernel, Precomputed)  # it has its own error for missing values
        rows = GivenRows(X)
        if plan.kernel.takes_vectors:
            rows = training_rows(X, Y, categorical=self.categorical, keep=self.keep, gaps=self.kernel is None)
        vectors, finite = plan.kernel.takes_vectors or given, rows.finite if not given else False
        X, Y = check_any_rows(self, rows.X, Y, vectors=vectors, finite=finite)
        rows.settle(self)
        fit = fit_any_target(X, Y, replace(plan, layout=rows.layout(X) if plan.kernel.takes_vectors else None))
        choice, unit = fit.choice, fit.unit
        self.embedding_, self.target_space_, self.targets_ = fit.embedding, fit.space, fit.targets
        self.objective_, self.history_ = unit * choice.value, [step.in_units(unit) for step in choice.history]
        self.n_iter_, self.complexity_ = max(len(choice.history), 1), fit.complexity
        self._held, self._fixed = fit.held, plan.fixed
        return self

    def _plan(self) -> AnyTargetPlan:
        owner, kernel = type(self).__name__, self._start_kernel()
        solver = solver_of(self.solver, owner)
        return AnyTargetPlan(
            kernel,
            learning_method(self.learn, owner),
            Exact() if isinstance(kernel, Precomputed) and solver.word == "auto" else solver,
            self.ridge,
            self.target_kernel,
            fills=self.prior == "marginal",
            scale="views" if self.kernel is None else None,
            random_state=self.random_state,
        )
