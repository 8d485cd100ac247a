"""The base of estimators whose answers are weights of training targets: the questions that can be asked."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.embedding.conditional import distribution_function, quantile_places
from kernelwright.embedding.herding import herd
from kernelwright.embedding.landmark_weights import LandmarkEmbedding
from kernelwright.embedding.target_space import TargetSpace
from kernelwright.estimators.any_target import HeldRows, TargetEmbedding
from kernelwright.estimators.base import KernelEstimator
from kernelwright.inputs.any_targets import check_any_targets, check_levels, values_at
from kernelwright.uncertainty.bounds import RiskBound
from kernelwright.uncertainty.risk import UNBOUNDED, UNBOUNDED_TARGETS, AnyTargetRisk, check_any_method

__all__ = ["TargetWeights"]

HUGE = 1e100  # values whose coefficients may overflow are solved in units of the largest
ROUNDING = 1e-12  # of a loss, relative to the largest l(y, y)


class TargetWeights(KernelEstimator):
    """Expectations, quantiles, samples and losses of a fitted embedding of targets of any kind."""

    embedding_: TargetEmbedding
    target_space_: TargetSpace
    targets_: np.ndarray
    values_: np.ndarray
    complexity_: float
    _held: HeldRows | None = None
    _fixed: bool = False  # whether bounds for a fixed kernel hold

    @property
    def _takes_gaps(self) -> bool:
        return self.kernel is None

    @property
    def classes_(self) -> np.ndarray:
        """The sorted labels; only if the targets are labels."""
        space = vars(self).get("target_space_")
        if space is None or space.kind != "labels":
            raise AttributeError(f"{type(self).__name__} has 'classes_' only after a fit to labels.")
        return space.values

    def weights(self, X: Any) -> np.ndarray:
        """Return ``(K + n ridge I)^-1 k(x)`` of Eq. (2) for each row x: the weight of every training row.

        Weights may be negative; they sum to one with ``prior="marginal"``. Equal training rows share their weight. With
        landmarks these are the weights of their ridge regression, and take a pass over the training rows.

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
        largest = float(np.abs(values).max(initial=0.0))
        unit = largest if largest > HUGE else 1.0
        means, coefficients = self.embedding_.solve(values.reshape(len(values), -1) / unit)
        outputs = torch.cat([means + K @ coefficients for K in self._kernel_blocks(new)]).numpy()
        return unit * outputs.reshape(len(outputs), *values.shape[1:])

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
        new, space, levels = self._new_points(X), self._represented, check_levels(q)
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
        new, space = self._new_points(X), self._represented
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"The 'size' parameter of sample must be an integer of at least 1. Got {size!r}.")
        L, blocks = space.gram(), (self.embedding_.whole_masses(K) for K in self._kernel_blocks(new))
        return space.values[torch.cat([herd(L, masses, int(size)) for masses in blocks]).numpy()]

    def score(self, X: Any, y: Any) -> float:
        """Return the share of the targets' variance, in the space of the target kernel, that is explained at new rows.

        It is ``1 - loss / loss of the marginal embedding``, with the mean of :meth:`losses` and the embedding of all
        training targets, whatever the row: one is perfect, zero is no better than the overall distribution of the
        targets. With the Brownian kernel it is a CRPS skill score, with the Kronecker delta a Brier skill score, and
        with the linear kernel the R^2 of :meth:`expectation` (against the mean of the training targets).
        """
        loss, Y, space = float(self.losses(X, y).mean()), check_any_targets(y), self._represented
        of_marginal = float(space.squared_distances(space.marginal()[None], Y, space.gram()).mean())
        rounding = ROUNDING * space.largest()
        if of_marginal <= rounding:  # all targets are the same, and as in training
            return float(loss <= rounding)
        return 1.0 - loss / of_marginal

    def losses(self, X: Any, y: Any) -> np.ndarray:
        """Return ``|l(y, .) - mu(x)|^2`` in the space of the target kernel l, for each row: smaller is better.

        With weights that sum to one (``prior="marginal"``), it is the CRPS for the Brownian kernel.
        """
        new, Y = self._new_points(X), check_any_targets(y)
        check_consistent_length(new, Y)
        self._represented.refuse_others(Y)
        return self._losses(new, Y)

    def risk_bound(self, method: str = "holdout", X: Any = None, y: Any = None, *, beta: float = 0.05) -> RiskBound:
        """Bound the expected loss at new rows, in units of ``2 sup l(y, y)`` and clipped there; it prints as a table.

        Parameters
        ----------
        method : {"holdout", "rademacher-fixed-kernel"}, default="holdout"
            "holdout" needs rows that were not fitted: pass them, or let ``fit`` hold some out (``holdout_share`` of the
            learning method). "rademacher-fixed-kernel" holds for kernels that were not chosen with the rows of the
            embedding (``kernel_share`` of the learning method, or ``learn=None`` with both kernels given), if the
            target kernel is bounded; it needs many thousands of rows to say something.
        X, y : array-like, optional
            Independent rows that the model has never seen, for "holdout".
        beta : float, default=0.05
            The bound may fail with this probability.

        Returns
        -------
        RiskBound
            With ``parts``, ``total``, ``confidence``, ``vacuous``, ``conditions``.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright import ConditionalMeanEmbedding, learning
        >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 1))
        >>> learn = learning.Auto(holdout_share=0.5)
        >>> model = ConditionalMeanEmbedding(learn=learn, random_state=0).fit(X, np.sin(3 * X[:, 0]))
        >>> bound = model.risk_bound("holdout")
        >>> bound.confidence, bound.vacuous
        (0.95, False)
        """
        check_is_fitted(self)
        check_any_method(method, X, y)
        largest, space = self.target_space_.largest(), self.target_space_
        if method == "holdout":
            return AnyTargetRisk(self._held_losses(X, y), largest).held_out(beta)
        if not self._fixed:
            raise ValueError(
                "The bound for fixed kernels does not hold here: a kernel or a scale was chosen with the rows that the "
                "embedding was solved on. Fit ConditionalMeanEmbedding(learn=learning.Auto(kernel_share=0.5)), which "
                "learns from half of the rows and solves the embedding on the others; or use method='holdout'."
            )
        rows, fills = self.embedding_.rows, self.embedding_.fills
        faults = (UNBOUNDED,) * (not self.kernel_.bounded) + (UNBOUNDED_TARGETS,) * (not space.kernel.bounded)
        losses = self._losses(rows.points, space.values[rows.number])
        risk = AnyTargetRisk(losses, largest, faults)
        return risk.fixed_kernel(rows.counts, self.complexity_, beta, shift=float(fills))

    def _held_losses(self, X: Any, y: Any) -> np.ndarray:
        """Return the losses at given rows, or at those that ``fit`` has held out."""
        if X is not None:
            return self.losses(X, y)
        if self._held is None:
            raise ValueError(
                "A held-out bound needs rows that were not fitted. Pass them, risk_bound('holdout', X, y), or fit "
                "ConditionalMeanEmbedding(learn=learning.Auto(holdout_share=0.3)), which holds some out."
            )
        return self._losses(self._held.points, self._held.targets)

    @property
    def _represented(self) -> TargetSpace:
        """The space of the targets that have masses: all of them, or those that stand for them."""
        embedding = self.embedding_
        return embedding.space if isinstance(embedding, LandmarkEmbedding) else self.target_space_

    def _losses(self, new: Tensor, Y: np.ndarray) -> np.ndarray:
        space, found, start = self._represented, [], 0
        L = space.gram()
        for K in self._kernel_blocks(new):
            found.append(space.squared_distances(self.embedding_.masses(K), Y[start : start + len(K)], L))
            start += len(K)
        return torch.cat(found).numpy()
