"""The scikit-learn face of the conditional mean embedding of any target: numbers, vectors or labels."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from kernelwright.embedding.dual import embed
from kernelwright.embedding.herding import herd
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import refuse_if_too_large
from kernelwright.estimators.base import KernelEstimator
from kernelwright.inputs.arrays import generator, plain, validate_data
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.kernels import Gaussian, Kernel, KroneckerDelta, Precomputed
from kernelwright.learning import LearningMethod, LearningTask, choose, learning_method
from kernelwright.learning.loop import Step
from kernelwright.numerics.linalg import Factor, low_rank_root
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives.losses import BRIER
from kernelwright.solvers import Exact
from kernelwright.storage.saved import saved

__all__ = ["ConditionalMeanEmbedding"]


ROOT_TOLERANCE = 1e-10  # of the largest l(y, y): what the features of the targets may leave out


@saved(
    "conditional-mean-embedding",
    fields="classes_ targets_ values_ target_kernel_ target_scaler_ scaler_ kernel_ ridge_ objective_ history_ "
    "n_iter_ factor_ jitter_ points_ _rows",
)
class ConditionalMeanEmbedding(KernelEstimator):
    """The whole conditional distribution of a target, as weights on the training rows.

    ``E[g(Y) | X = x]`` is estimated by ``sum_i w_i(x) g(y_i)`` for any function g, with the weights
    ``w(x) = (K + n ridge I)^-1 k(x)``: Eq. (2) of [Hsu2018]_. One fit therefore answers questions that are asked
    later: means, moments, probabilities of events, quantiles, samples.

    The kernel and the ridge are learned by the embedding's own validation loss, the mean of
    ``|l(y_i, .) - mu_{-i}(x_i)|^2`` in the space of the target kernel l [Grunewalder2012]_, in closed form.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None, default=None
        ``None`` is the library's default for tables, :class:`kernelwright.kernels.Tabular`, on its own views of the
        columns. The inputs of a given kernel are left untouched. With "precomputed", ``X`` is the kernel matrix (at
        prediction: new rows against training rows).
    ridge : float or "auto", default="auto"
        lambda: the start value where it is learned, the value itself where it is not (then "auto" is 0.01).
    learn : str, object of :mod:`kernelwright.learning` or None, default="auto"
        How hyperparameters are chosen, by the squared loss of the target's features. "leave-one-out": each row by the
        embedding of all others. "folds": each fold by the embedding of the other folds. "auto": the library's recipe,
        leave-one-out on a sample of 800 to 2000 rows. "median": length scales at the median distance. ``None``: as
        given. Words stand for objects with their default settings, such as ``Folds(5)``.
    target_kernel : Kernel or None, default=None
        The kernel l between targets. It says which errors count in learning, and what :meth:`sample` spreads over; it
        is not learned, and :meth:`expectation` and :meth:`quantile` use it for nothing else. ``None`` is a Gaussian
        at the median distance between standardised numbers, and the Kronecker delta between labels. A given kernel
        sees the targets as they are.
    prior : {"zero", "marginal"}, default="zero"
        What the embedding returns to far from all data. "zero" is Eq. (2) to the letter: there all weights, and so
        all expectations, shrink to zero. With "marginal", the mass that the weights miss is given to all training
        rows alike: weights have sum one, and expectations move with a shift of g. Prefer it for numbers whose mean
        is far from zero.
    random_state : int, RandomState or None, default=None
        For the sample of rows that "auto" learns from. No global random state is used.

    Attributes
    ----------
    kernel_ : Kernel
        A copy of ``kernel`` with the learned numbers.
    ridge_ : float
    target_kernel_ : Kernel
    objective_ : float
        Value of the objective that was learned by (NaN where there was none).
    history_ : list of Step
    n_iter_ : int
    classes_ : ndarray
        The labels; only where targets are labels.
    targets_ : ndarray
        The training targets, in the order of the rows of ``X``.
    values_ : ndarray
        The distinct targets, sorted.
    points_ : ndarray
        Distinct training rows as the kernel sees them.
    factor_ : Factor
        The Cholesky factor of ``K + n ridge I``, kept because each new g needs it.
    jitter_ : float
        What had to be added to that diagonal so that it could be factorised, with a
        :class:`~kernelwright.NumericalRepairWarning`; 0 where nothing had to be.
    n_features_in_, feature_names_in_

    Notes
    -----
    Targets are labels if they are strings, booleans, a pandas categorical or of dtype object; whole numbers of any
    integer dtype are numbers. Equal rows with equal targets are merged and counted. Cost is cubic, memory quadratic
    in the number of distinct rows; so is the size of a pickle.

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

    kernel_: Kernel
    target_kernel_: Kernel
    ridge_: float
    values_: np.ndarray
    factor_: Factor

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

    # learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, Y: Any) -> ConditionalMeanEmbedding:
        """Learn the hyperparameters and factorise the embedding of all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs; a list of strings where the kernel takes strings.
        Y : array-like of shape (n,) or (n, p)
            Real numbers, vectors or labels.
        """
        self._validate_params()
        kernel = self._start_kernel()
        X, Y = self._check_training_data(kernel, X, Y)
        number = self._set_targets(Y)
        if kernel.takes_vectors:
            distinct = merge_duplicates(X, number, np.ones(len(X)))
            X, number, counts, place = distinct.X, distinct.y, distinct.counts, distinct.place
            self.scaler_ = fit_scaler("views", X, counts) if self.kernel is None else None
            points = self._encode(kernel, X)
        else:
            self.scaler_, counts, place = None, np.ones(len(Y)), np.arange(len(Y))
            points = kernel.encode_training(X)
        refuse_if_too_large(Exact(), len(points))
        self._rows = (place, counts, number)
        self._learn(kernel, points)
        return self

    def _check_training_data(self, kernel: Kernel, X: Any, Y: Any) -> tuple[Any, np.ndarray]:
        Y = plain(_labels_of_category(Y))
        if kernel.takes_vectors or isinstance(kernel, Precomputed):
            given = isinstance(kernel, Precomputed)  # which has words of its own for values that are missing
            X, Y = validate_data(
                self, X, Y, dtype=np.float64, multi_output=True, ensure_min_samples=2, ensure_all_finite=not given
            )
        else:
            X = np.asarray(X, dtype=object)
            Y = check_array(Y, dtype=None, ensure_2d=False, ensure_min_samples=2, input_name="Y", estimator=self)
            check_consistent_length(X, Y)
        return X, _checked_targets(Y)

    def _set_targets(self, Y: np.ndarray) -> np.ndarray:
        """Keep the distinct targets and settle the kernel between them; the number of each row's target."""
        self.targets_, labels = Y, Y.dtype.kind not in NUMBERS
        try:
            self.values_, number, counts = np.unique(
                Y, return_inverse=True, return_counts=True, axis=0 if Y.ndim == 2 else None
            )
        except TypeError:
            kinds = sorted({type(label).__name__ for label in Y})
            raise ValueError(f"Labels must be of one type, so that they can be sorted. Got {kinds}.") from None
        if labels:
            self.classes_ = self.values_
        elif hasattr(self, "classes_"):  # from an earlier fit
            del self.classes_
        kernel = self.target_kernel
        if kernel is not None and kernel.takes_vectors == labels and not isinstance(kernel, KroneckerDelta):
            raise ValueError(
                f"target_kernel={kernel!r} does not fit the targets, which are {'labels' if labels else 'numbers'}. "
                "Leave target_kernel=None, or pass a kernel on such targets."
            )
        default = KroneckerDelta() if labels else Gaussian(lengthscale="median")
        self.target_kernel_ = default if kernel is None else copy.deepcopy(kernel)
        self.target_scaler_ = None
        if kernel is None and not labels:
            table = self.values_.reshape(len(self.values_), -1)
            self.target_scaler_ = fit_scaler("standard", table, counts)
        self.target_kernel_.prepare(self._target_points(self.values_), torch.from_numpy(counts).double())
        return number.reshape(-1)

    def _learn(self, kernel: Kernel, points: Tensor) -> None:
        _, counts, number = self._rows
        weights = torch.from_numpy(counts)
        root = low_rank_root(self._target_gram(), ROOT_TOLERANCE)[torch.from_numpy(number)]
        # In units of the mean l(y, y), so that what is learned does not depend on the target kernel's scale.
        unit = float(weights @ (root * root).sum(1)) / float(weights.sum()) or 1.0
        features = root / math.sqrt(unit)
        data = TrainingSet.of(
            points,
            features,
            weights=weights,
            counts=weights,
            prior=weights @ features / weights.sum() if self.prior == "marginal" else None,
            strata=torch.from_numpy(number if hasattr(self, "classes_") else np.zeros(len(number), dtype=np.int64)),
        )
        task = LearningTask(kernel, data, self.ridge, generator(self.random_state), loss=BRIER)
        choice = choose(learning_method(self.learn, type(self).__name__), task)
        self.kernel_, self.ridge_, self.objective_ = choice.kernel, choice.ridge, unit * choice.value
        self.history_, self.n_iter_ = _in_units(choice.history, unit), max(len(choice.history), 1)
        with torch.no_grad(), threads_for(len(data)):
            self.factor_ = embed(self.kernel_.matrix(points), data, self.ridge_).factor
        self.jitter_ = self.factor_.jitter
        self.points_ = points.numpy()

    # targets -------------------------------------------------------------------------------------------

    def _target_points(self, Y: np.ndarray) -> Tensor:
        """Targets as their kernel sees them."""
        if Y.dtype.kind in NUMBERS:
            Y = Y.reshape(len(Y), -1)
            return self.target_kernel_.encode(Y if self.target_scaler_ is None else self.target_scaler_.transform(Y))
        if not isinstance(self.target_kernel_, KroneckerDelta):
            return self.target_kernel_.encode(Y)
        place = {label: i for i, label in enumerate(self.classes_.tolist())}
        return torch.tensor([[place.get(label, -1)] for label in Y.tolist()], dtype=torch.float64)

    def _target_gram(self) -> Tensor:
        with torch.no_grad():
            return self.target_kernel_.forward(self._target_points(self.values_))

    # prediction ----------------------------------------------------------------------------------------

    def weights(self, X: Any) -> np.ndarray:
        """``(K + n ridge I)^-1 k(x)`` of Eq. (2) for each row x: the weight of every training row.

        Weights may be negative and need not have sum one (with ``prior="marginal"`` they have). Equal training rows
        share their weight.

        Returns
        -------
        ndarray of shape (n_new, n_train)
        """
        new = self._new_points(X)
        place, counts, _ = self._rows
        share = (1.0 / counts)[place]
        return np.concatenate([self._row_weights(K).numpy()[:, place] * share for K in self._kernel_blocks(new)])

    def expectation(self, X: Any, g: Any = None) -> np.ndarray:
        """``E[g(Y) | X = x]`` for each row x.

        Parameters
        ----------
        X : array-like
        g : callable, mapping, array-like or None, default=None
            A callable gets the array of all training targets and returns its values there, of shape (n,) or (n, q).
            A mapping gives a number for each label. An array holds the values of g at the training targets itself.
            ``None`` is the target: the mean of numbers and vectors, the raw probability of each of ``classes_``
            for labels (Eq. 5: they may leave [0, 1]).

        Returns
        -------
        ndarray of shape (n_new,) or (n_new, q)
        """
        new, values = self._new_points(X), self._values_of(g)
        place, counts, _ = self._rows
        columns = values.reshape(len(values), -1)
        # Copies of a row share its weight equally, so they count through their mean.
        merged = np.column_stack([np.bincount(place, column, len(counts)) / counts for column in columns.T])
        means = torch.from_numpy(counts @ merged / counts.sum() * (self.prior == "marginal"))
        coefficients = self.factor_.solve(torch.from_numpy(merged) - means)
        outputs = np.concatenate([(means + K @ coefficients).numpy() for K in self._kernel_blocks(new)])
        return outputs.reshape(len(outputs), *values.shape[1:])

    def quantile(self, X: Any, q: Any, *, method: str = "rearrange") -> np.ndarray:
        """Quantiles of a real target at each row: the smallest training target with at least q of the mass below it.

        Parameters
        ----------
        X : array-like
        q : float or sequence of floats in [0, 1]
        method : {"rearrange", "clip"}
            Weights may be negative; a distribution may not. "rearrange" keeps the signs, gives the mass that is
            missing from one to all training rows alike, and sorts the distribution function. "clip" sets negative
            weights to zero and divides by the sum, as Eq. (6) does for classes; it blurs the tails where a smooth
            kernel makes many weights negative.

        Returns
        -------
        ndarray of shape (n_new,), or (n_new, len(q)) for a sequence
        """
        new = self._new_points(X)
        if hasattr(self, "classes_") or self.values_.ndim != 1:
            kind = "labels" if hasattr(self, "classes_") else "vectors"
            raise ValueError(f"Quantiles need targets that are real numbers, but this model was fitted on {kind}.")
        if method not in ("clip", "rearrange"):
            raise ValueError(f"The 'method' parameter must be 'clip' or 'rearrange'. Got {method!r} instead.")
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"The 'q' parameter must be a number in [0, 1] or a list of them. Got {q!r} instead.")
        # A rounding error in the mass below a target must not move the quantile; and none lies outside all mass.
        asked = torch.from_numpy(np.maximum(np.atleast_1d(levels) - 1e-12, 1e-12))
        found = []
        for K in self._kernel_blocks(new):
            below = self._distribution_function(self._target_masses(K), method)
            places = torch.searchsorted(below.contiguous(), asked.expand(len(below), -1).contiguous())
            found.append(self.values_[places.clamp(max=len(self.values_) - 1).numpy()])
        quantiles = np.concatenate(found)
        return quantiles[:, 0] if levels.ndim == 0 else quantiles

    def sample(self, X: Any, size: int) -> np.ndarray:
        """Training targets that stand for the conditional distribution at each row, by kernel herding.

        The plain mean of g over the sample follows ``E[g(Y) | x]``, with an error that falls about like 1/size for g
        in the space of the target kernel (random draws: like 1/sqrt(size)) [Chen2010]_. Nothing is drawn at random:
        the same row gives the same sample, and a smaller sample is the beginning of a larger one. A sample has mass
        one; what the weights miss of it is given to all training rows alike.

        Returns
        -------
        ndarray of shape (n_new, size) or (n_new, size, p)
        """
        new = self._new_points(X)
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"The 'size' parameter of sample must be a whole number of at least 1. Got {size!r}.")
        L = self._target_gram()
        picks = [herd(L, self._whole(self._target_masses(K)), int(size)) for K in self._kernel_blocks(new)]
        return self.values_[torch.cat(picks).numpy()]

    def score(self, X: Any, y: Any) -> float:
        """Minus the mean of ``|l(y, .) - mu(x)|^2`` over new rows: larger is better, for one and the same l."""
        new = self._new_points(X)
        Y = _checked_targets(check_array(plain(_labels_of_category(y)), dtype=None, ensure_2d=False, input_name="y"))
        check_consistent_length(new, Y)
        if (Y.dtype.kind in NUMBERS) == hasattr(self, "classes_") or Y.shape[1:] != self.values_.shape[1:]:
            raise ValueError("The targets to score are not of the kind and shape that this model was fitted on.")
        L, known, kernel = self._target_gram(), self._target_points(self.values_), self.target_kernel_
        total, start = 0.0, 0
        for K in self._kernel_blocks(new):
            masses, points = self._target_masses(K), self._target_points(Y[start : start + len(K)])
            start += len(K)
            with torch.no_grad():
                cross = kernel.forward(points, known)
                total += float(((masses @ L - 2.0 * cross) * masses).sum() + kernel.diag(points).sum())
        return -total / len(Y)

    def _values_of(self, g: Any) -> np.ndarray:
        """The values of g at the training targets, in the order of the training rows."""
        Y = self.targets_
        if g is None:
            values = Y[:, None] == self.classes_ if hasattr(self, "classes_") else Y
        elif isinstance(g, Mapping):
            if not hasattr(self, "classes_"):
                raise ValueError("A mapping g is for labels, but this model was fitted on numbers: pass a function.")
            missing = [label for label in self.classes_.tolist() if label not in g]
            if missing:
                raise ValueError(f"The mapping g must give a number for every label. It has none for {missing[:5]}.")
            values = [g[label] for label in Y.tolist()]
        else:
            values = g(Y.copy()) if callable(g) else g
        values = np.asarray(values, dtype=np.float64)
        if values.ndim not in (1, 2) or len(values) != len(Y):
            raise ValueError(
                f"g must give one number, or one row of numbers, for each of the {len(Y)} training targets. Got "
                f"shape {values.shape} instead."
            )
        if not np.isfinite(values).all():
            raise ValueError("The values of g at the training targets contain NaN or infinity.")
        return values

    def _row_weights(self, K: Tensor) -> Tensor:
        """Weights of the distinct training rows, for rows of kernel values."""
        weights = self.factor_.solve(K.T.contiguous()).T
        return self._whole(weights, torch.from_numpy(self._rows[1])) if self.prior == "marginal" else weights

    def _target_masses(self, K: Tensor) -> Tensor:
        """The same, summed over the rows of each distinct target."""
        weights, number = self._row_weights(K), torch.from_numpy(self._rows[2])
        return torch.zeros(len(K), len(self.values_), dtype=torch.float64).index_add_(1, number, weights)

    def _marginal(self) -> Tensor:
        """The share of each distinct target in the training rows."""
        _, counts, number = self._rows
        return torch.from_numpy(np.bincount(number, counts, len(self.values_)) / counts.sum())

    def _whole(self, weights: Tensor, shares: Tensor | None = None) -> Tensor:
        """Weights with the mass that is missing from one spread in fixed shares (those of the targets)."""
        shares = self._marginal() if shares is None else shares / shares.sum()
        return weights + (1.0 - weights.sum(1, keepdim=True)) * shares

    def _distribution_function(self, masses: Tensor, method: str) -> Tensor:
        """The mass up to each of the distinct targets, which are sorted."""
        if method == "rearrange":
            return self._whole(masses).cumsum(1).sort(1).values
        masses = masses.clamp(min=0.0)
        total = masses.sum(1, keepdim=True)
        # Where no weight is positive nothing is known but the training targets themselves.
        return torch.where(total > 0, masses / total.clamp(min=1e-300), self._marginal()).cumsum(1)


NUMBERS = "iuf"  # kinds of dtype that are numbers; booleans are labels


def _labels_of_category(Y: Any) -> Any:
    """A pandas categorical as an array of objects, because a category of numbers is still a label."""
    return np.asarray(Y, dtype=object) if str(getattr(Y, "dtype", "")) == "category" else Y


def _checked_targets(Y: np.ndarray) -> np.ndarray:
    """Targets as they are kept: numbers of shape (n,) or (n, p), or labels of shape (n,)."""
    if Y.dtype.kind in NUMBERS:
        return Y + np.zeros((), dtype=Y.dtype)  # negative zero equals zero
    if Y.dtype.kind not in "bOUS":
        raise ValueError(f"Targets must be numbers, vectors of numbers or labels. Got dtype {Y.dtype} instead.")
    if Y.ndim == 2 and Y.shape[1] > 1:
        raise ValueError(f"Labels must be a single column. Got shape {Y.shape} of dtype {Y.dtype} instead.")
    Y = column_or_1d(Y, warn=True)
    if Y.dtype.kind == "O" and any(label is None for label in Y):
        raise ValueError("The labels contain None. Leave rows without a label out.")
    return Y


def _in_units(history: list[Step], unit: float) -> list[Step]:
    return [
        replace(
            step,
            objective=unit * step.objective,
            loss=unit * step.loss,
            complexity=math.sqrt(unit) * step.complexity,
        )
        for step in history
    ]
