"""The scikit-learn estimator of the conditional mean embedding, for targets that are numbers, vectors or labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions

from kernelwright.embedding.conditional import (
    FactorisedEmbedding,
    distribution_function,
    merge_rows,
    quantile_places,
    whole,
)
from kernelwright.embedding.dual import embed
from kernelwright.embedding.herding import herd
from kernelwright.embedding.target_space import TargetSpace
from kernelwright.estimators.arrows import refuse_if_too_large
from kernelwright.estimators.base import KernelEstimator, part_of
from kernelwright.inputs.any_targets import DistinctTargets, check_any_rows, check_any_targets, check_levels, values_at
from kernelwright.inputs.arrays import generator
from kernelwright.kernels import Kernel, Precomputed
from kernelwright.learning import LearningMethod, LearningTask, choose, learning_method
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives.losses import BRIER
from kernelwright.solvers import Exact
from kernelwright.storage.saved import saved

__all__ = ["ConditionalMeanEmbedding"]


@saved("conditional-mean-embedding", fields="targets_ target_space_ embedding_ objective_ history_ n_iter_")
class ConditionalMeanEmbedding(KernelEstimator):
    """The whole conditional distribution of a target, as weights on the training rows.

    ``E[g(Y) | X = x]`` is estimated by ``sum_i w_i(x) g(y_i)`` for any function g, with the weights
    ``w(x) = (K + n ridge I)^-1 k(x)``: Eq. (2) of [Hsu2018]_. So one fit gives means, moments, probabilities of events,
    quantiles and samples.

    The kernel and the ridge are learned by the embedding's own validation loss, the mean of
    ``|l(y_i, .) - mu_{-i}(x_i)|^2`` in the space of the target kernel l [Grunewalder2012]_, in closed form.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None, default=None
        ``None`` is the library's default for tables, :class:`kernelwright.kernels.Tabular`, on its own views of the
        columns. The inputs of a given kernel are not scaled. With "precomputed", ``X`` is the kernel matrix (at
        prediction: new rows against training rows).
    ridge : float or "auto", default="auto"
        lambda: the initial value if it is learned, otherwise the value itself (then "auto" is 0.01).
    learn : str, object of :mod:`kernelwright.learning` or None, default="auto"
        How hyperparameters are chosen, by the squared loss of the target's features. "leave-one-out": each row by the
        embedding of all others. "folds": each fold by the embedding of the other folds. "auto": the library's recipe,
        leave-one-out on a sample of 800 to 2000 rows. "median": length scales at the median distance. ``None``: nothing
        is learned. Strings are short forms of objects with default settings, such as ``Folds(5)``.
    target_kernel : Kernel or None, default=None
        The kernel l between targets. It defines the loss of learning and the space of :meth:`sample`; it is not
        learned, and :meth:`expectation` and :meth:`quantile` do not use it. ``None`` is a Gaussian at the median
        distance between standardised numbers, and the Kronecker delta between labels. A given kernel sees the unscaled
        targets.
    prior : {"zero", "marginal"}, default="zero"
        The embedding far from all data. "zero" is exactly Eq. (2): all weights, and so all expectations, shrink to
        zero. With "marginal", the missing mass of the weights is shared equally by all training rows: weights sum to
        one, and a constant added to g is added to its expectation. Use it for numbers whose mean is far from zero.
    random_state : int, RandomState or None, default=None
        For the sample of rows that "auto" learns from. No global random state is used.

    Attributes
    ----------
    embedding_ : FactorisedEmbedding
        The solved embedding (:class:`kernelwright.embedding.conditional.FactorisedEmbedding`). Parts of it: ``kernel_``
        (a copy of ``kernel`` with the learned parameters), ``ridge_``, ``scaler_``, ``points_`` (distinct training rows
        as the kernel sees them), ``factor_`` (the Cholesky factor of ``K + n ridge I``), ``jitter_`` (number added to
        the diagonal so that it could be factorised, with a :class:`~kernelwright.NumericalRepairWarning`).
    target_space_ : TargetSpace
        The distinct targets, ``values_`` (sorted), and the kernel between them, ``target_kernel_``.
    targets_ : ndarray
        The training targets, in the order of the rows of ``X``.
    classes_ : ndarray
        The labels; only if the targets are labels.
    objective_ : float
        Value of the learning objective (NaN if there was none).
    history_ : list of Step
    n_iter_ : int
    n_features_in_, feature_names_in_

    Notes
    -----
    Targets are labels if they are strings, booleans, a pandas categorical or of dtype object; integers are numbers.
    Equal rows with equal targets are merged and counted. Cost is cubic in the number of distinct rows; memory and the
    size of a pickle are quadratic.

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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [Kernel, StrOptions({"precomputed"}), None],
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "learn": [LearningMethod, StrOptions({"auto", "leave-one-out", "folds", "median"}), None],
        "target_kernel": [Kernel, None],
        "prior": [StrOptions({"zero", "marginal"})],
        "random_state": ["random_state"],
    }

    embedding_: FactorisedEmbedding
    target_space_: TargetSpace

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
        target_kernel: Kernel | None = None,
        prior: str = "zero",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.learn = learn
        self.target_kernel = target_kernel
        self.prior = prior
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
        method, kernel = learning_method(self.learn, type(self).__name__), self._start_kernel()
        refuse_shares(method)
        given = isinstance(kernel, Precomputed)  # it has its own error for missing values
        X, Y = check_any_rows(self, X, Y, vectors=kernel.takes_vectors or given, finite=not given)
        distinct = DistinctTargets.of(Y)
        space = TargetSpace.of(distinct, self.target_kernel)
        rows = merge_rows(X, distinct.number, kernel, "views" if self.kernel is None else None)
        refuse_if_too_large(Exact(), len(rows.points))
        features, fills = space.features(), self.prior == "marginal"
        data = rows.training_set(features.table, centred=fills, classes=space.kind == "labels")
        choice = choose(method, LearningTask(kernel, data, self.ridge, generator(self.random_state), loss=BRIER))
        with torch.no_grad(), threads_for(len(data)):
            factor = embed(choice.kernel.matrix(data.points), data, choice.ridge).factor
        self.embedding_ = FactorisedEmbedding(choice.kernel, choice.ridge, rows, factor, fills=fills)
        self.targets_, self.target_space_ = Y, space
        self.objective_, self.history_ = (
            features.unit * choice.value,
            [step.in_units(features.unit) for step in choice.history],
        )
        self.n_iter_ = max(len(choice.history), 1)
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The sorted labels; only if the targets are labels."""
        space = vars(self).get("target_space_")
        if space is None or space.kind != "labels":
            raise AttributeError(f"{type(self).__name__} has 'classes_' only after a fit to labels.")
        return space.values

    def weights(self, X: Any) -> np.ndarray:
        """Return ``(K + n ridge I)^-1 k(x)`` of Eq. (2) for each row x: the weight of every training row.

        Weights may be negative and need not sum to one (with ``prior="marginal"`` they do). Equal training rows share
        their weight.

        Returns
        -------
        ndarray of shape (n_new, n_train)
        """
        new = self._new_points(X)
        return torch.cat([self.embedding_.row_weights(K) for K in self._kernel_blocks(new)]).numpy()

    def expectation(self, X: Any, g: Any = None) -> np.ndarray:
        """Return ``E[g(Y) | X = x]`` for each row x.

        Parameters
        ----------
        X : array-like
        g : callable, mapping, array-like or None, default=None
            A callable takes the array of all training targets and returns values of shape (n,) or (n, q). A mapping
            gives a number for each label. An array holds the values of g at the training targets. ``None`` is the
            target itself: the mean of numbers and vectors, and for labels the raw probability of each of
            ``classes_`` (Eq. 5: they may be outside [0, 1]).

        Returns
        -------
        ndarray of shape (n_new,) or (n_new, q)
        """
        new, values = self._new_points(X), values_at(g, self.targets_, self.values_)
        means, coefficients = self.embedding_.solve(values.reshape(len(values), -1))
        outputs = torch.cat([means + K @ coefficients for K in self._kernel_blocks(new)]).numpy()
        return outputs.reshape(len(outputs), *values.shape[1:])

    def quantile(self, X: Any, q: Any, *, method: str = "rearrange") -> np.ndarray:
        """Return quantiles of a real target: the smallest training target with at least the mass q up to it.

        Parameters
        ----------
        X : array-like
        q : float or sequence of floats in [0, 1]
        method : {"rearrange", "clip"}
            How negative weights are handled. "rearrange" keeps the signs, shares the missing mass equally among all
            training rows, and sorts the distribution function. "clip" sets negative weights to zero and divides by
            the sum, as Eq. (6) does for classes; it blurs the tails if a smooth kernel makes many weights negative.

        Returns
        -------
        ndarray of shape (n_new,), or (n_new, len(q)) for a sequence
        """
        new, space, levels = self._new_points(X), self.target_space_, check_levels(q)
        if space.kind != "numbers":
            raise ValueError(
                f"Quantiles need targets that are real numbers, but this model was fitted on {space.kind}."
            )
        marginal, found = space.marginal(), []
        for K in self._kernel_blocks(new):
            below = distribution_function(self.embedding_.masses(K), marginal, method)
            found.append(space.values[quantile_places(below, np.atleast_1d(levels))])
        quantiles = np.concatenate(found)
        return quantiles[:, 0] if levels.ndim == 0 else quantiles

    def sample(self, X: Any, size: int) -> np.ndarray:
        """Return training targets that represent the conditional distribution at each row, by kernel herding.

        The mean of g over the sample approximates ``E[g(Y) | x]``, with an error of about 1/size for g in the space of
        the target kernel (random draws: 1/sqrt(size)) [Chen2010]_. Nothing is random: the same row gives the same
        sample, and a smaller sample is the beginning of a larger one. The missing mass of the weights is shared
        equally by all training rows.

        Returns
        -------
        ndarray of shape (n_new, size) or (n_new, size, p)
        """
        new, space = self._new_points(X), self.target_space_
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"The 'size' parameter of sample must be an integer of at least 1. Got {size!r}.")
        L, marginal = space.gram(), space.marginal()
        blocks = (whole(self.embedding_.masses(K), marginal) for K in self._kernel_blocks(new))
        return space.values[torch.cat([herd(L, masses, int(size)) for masses in blocks]).numpy()]

    def score(self, X: Any, y: Any) -> float:
        """Return minus the mean of ``|l(y, .) - mu(x)|^2`` over new rows: larger is better, for the same kernel l."""
        new, Y, space = self._new_points(X), check_any_targets(y), self.target_space_
        check_consistent_length(new, Y)
        space.refuse_others(Y)
        L, total, start = space.gram(), 0.0, 0
        for K in self._kernel_blocks(new):
            some = Y[start : start + len(K)]
            total += float(space.squared_distances(self.embedding_.masses(K), some, L).sum())
            start += len(K)
        return -total / len(Y)


def refuse_shares(method: LearningMethod) -> None:
    """Raise an error for shares of the rows that only bounds need."""
    if method.kernel_share is not None or method.holdout_share is not None:
        raise ValueError(
            "ConditionalMeanEmbedding learns from all rows: kernel_share and holdout_share are for the bounds of "
            "classifiers. Leave both out of 'learn'."
        )
