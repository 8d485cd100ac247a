"""Bounds on the risk of a fitted classifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.objectives.losses import clipped_log_loss
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.bounds import (
    LOSSES,
    LeftOutLoss,
    RiskBound,
    clipped_losses,
    fixed_kernel_bound,
    holdout_error_bound,
    holdout_loss_bound,
    left_out_estimate,
    rademacher_bound,
)

__all__ = ["BoundedRisk", "RiskTerms", "left_out_losses", "means_of_groups"]

WEIGHTED = "But rows had weights: they were not drawn as often as they count."
UNBOUNDED = "But k(x, x) has no known bound: its largest value was taken over training rows."
GROUPED = "Each group counts once, whatever its rows are many: it is about rows of a new group."
HERDED = "But solver='herding' has picked its rows: they are not a random sample."

METHODS = ("rademacher", "rademacher-fixed-kernel", "holdout", "leave-one-out")


@saved("risk-terms")
@dataclass(frozen=True)
class RiskTerms:
    """What a fit leaves behind for bounds on its risk."""

    training_loss: float  # as in Eq. (7)
    clipped_loss: float  # clipped at 1/e
    n_clipped: float  # rows whose mean that is
    n_rows: float
    prior: float  # norm of what is added to all outputs
    left_out: dict[str, LeftOutLoss]
    fixed_kernel: bool  # whether the kernel was not chosen with the rows of the embedding
    faults: tuple[str, ...]  # sentences that say why the bounds from training rows are none

    @classmethod
    def of(
        cls,
        fitted: tuple[Tensor, TrainingSet],
        left_out: tuple[Tensor, Tensor, TrainingSet],
        *,
        n_rows: float,
        prior: float = 0.0,
        fixed_kernel: bool = False,
        faults: tuple[str, ...] = (),
    ) -> RiskTerms:
        """From outputs at fitted rows, and outputs and logarithms of probabilities at rows left out."""
        outputs, rows = fitted
        loss, _ = clipped_log_loss(outputs, rows.targets, rows.weights)
        clipped = clipped_losses(outputs, rows.targets) @ rows.weights / rows.weights.sum()
        return cls(
            loss,
            float(clipped),
            rows.total_weight,
            n_rows,
            prior,
            left_out_losses(*left_out),
            fixed_kernel,
            faults,
        )


def means_of_groups(losses: tuple[np.ndarray, np.ndarray], groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Losses and wrong answers of each group, on average over its rows."""
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)
    first, second = (np.bincount(number, each) / np.bincount(number) for each in losses)
    return first, second


def left_out_losses(outputs: Tensor, log_p: Tensor, rows: TrainingSet) -> dict[str, LeftOutLoss]:
    """The two losses of outputs and probabilities at rows that were left out."""
    losses = {
        "clipped": clipped_losses(outputs, rows.targets),
        "error": log_p.argmax(1) != rows.targets.argmax(1),
    }
    options = {"counts": rows.counts, "groups": rows.groups}
    return {word: LeftOutLoss.of(values, rows.weights, **options) for word, values in losses.items()}


class BoundedRisk:
    """``risk_bound`` for a classifier that keeps its :class:`RiskTerms`."""

    if TYPE_CHECKING:  # what the classifier itself has
        classes_: np.ndarray
        complexity_: float
        _outputs_and_support: Any
        _link: Any
        _risk_terms: RiskTerms
        _holdout: tuple[np.ndarray, np.ndarray] | None

    def risk_bound(
        self, method: str = "rademacher", X: Any = None, y: Any = None, *, beta: float = 0.05, loss: str = "clipped"
    ) -> RiskBound:
        """A bound on the expected loss at new rows: a record that prints as a table.

        Parameters
        ----------
        method : str, default="rademacher"
            "rademacher" is Theorem 4 of [Hsu2018]_, Eq. (11). It is almost always vacuous.
            "rademacher-fixed-kernel" has 4e / sqrt(n) in place of 4e, and holds where the kernel was learned from other
            rows than the embedding (``kernel_share``) or not learned at all. "holdout", the tightest, needs rows that
            were not fitted: pass them, or let ``fit`` keep some (``holdout_share``). "leave-one-out" is an estimate
            with no guarantee, and an upper limit (``upper``) that holds about as often as it says. For an exact
            solution of up to 2000 rows it learns anew without each of ten parts of them, once.
        X, y : array-like, optional
            Rows that the model has never seen, for "holdout"; they must be independent, so of groups one row each.
        beta : float, default=0.05
            The bound may fail with this probability.
        loss : {"clipped", "error"}, default="clipped"
            Cross entropy of the raw outputs clipped at 1/e, or the share of wrong answers ("holdout" and
            "leave-one-out" only).

        Returns
        -------
        RiskBound
            With ``parts``, ``total``, ``upper``, ``confidence``, ``vacuous``, ``guaranteed``, ``method``,
            ``conditions``.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from kernelwright import EmbeddingClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> model = EmbeddingClassifier(random_state=0).fit(X[::2], y[::2])
        >>> bound = model.risk_bound("holdout", X[1::2], y[1::2], loss="error")
        >>> bound.confidence, bound.total < 0.1, bound.vacuous
        (0.95, True, False)
        >>> model.risk_bound().vacuous
        True
        """
        check_is_fitted(self)
        if method not in METHODS or loss not in LOSSES:
            raise ValueError(
                f"The 'method' of risk_bound must be one of {METHODS} and its 'loss' one of {tuple(LOSSES)}. "
                f"Got {method!r} and {loss!r} instead."
            )
        if method == "holdout":
            losses, wrong = self._held_out(X, y)
            if wrong.dtype != bool:  # means of groups, which are the independent draws
                bound = holdout_loss_bound(wrong if loss == "error" else losses, beta)
                return replace(bound, loss=loss, conditions=f"{bound.conditions} {GROUPED}")
            return holdout_error_bound(wrong, beta) if loss == "error" else holdout_loss_bound(losses, beta)
        if X is not None or y is not None:
            raise ValueError(f"Only method='holdout' takes rows. Got some with method={method!r}.")
        if method == "leave-one-out":
            refitted, n_parts = self._refitted_losses()
            return left_out_estimate(self._risk_terms.left_out[loss], loss, beta, refitted.get(loss), n_parts)
        if loss == "error":
            raise ValueError(f"method={method!r} bounds the clipped loss only; for the error rate use 'holdout'.")
        return self._from_training_rows(method, beta)

    def _refitted_losses(self) -> tuple[dict[str, LeftOutLoss], int]:
        """Losses of rows left out of everything, and of how many parts; none where that is not at hand."""
        return {}, 0

    def _from_training_rows(self, method: str, beta: float) -> RiskBound:
        terms = self._risk_terms
        if method == "rademacher":
            bound = rademacher_bound(terms.training_loss, self.complexity_, terms.n_rows, beta, prior=terms.prior)
        else:
            if not terms.fixed_kernel:
                raise ValueError(
                    "The bound for a fixed kernel does not hold here: the kernel was chosen with the rows that the "
                    "embedding was solved on. Fit EmbeddingClassifier(kernel_share=0.5), which learns the kernel "
                    "from half of the rows and solves the embedding on the others; or use method='holdout'."
                )
            bound = fixed_kernel_bound(terms.clipped_loss, self.complexity_, terms.n_clipped, beta)
        if not terms.faults:
            return bound
        return replace(bound, confidence=0.0, conditions=" ".join([bound.conditions, *terms.faults]))

    def _held_out(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Clipped losses and wrong answers at given rows, or at those that ``fit`` has kept."""
        if X is None and y is None:
            if self._holdout is None:
                raise ValueError(
                    "A held-out bound needs rows that were not fitted. Pass them, risk_bound('holdout', X, y), or fit "
                    "EmbeddingClassifier(holdout_share=0.3), which keeps some for this."
                )
            return self._holdout
        if X is None or y is None:
            raise ValueError("Held-out rows need both X and y.")
        y = column_or_1d(y)
        outputs, support = self._outputs_and_support(X)
        check_consistent_length(outputs, y)
        return self._losses(outputs, support, y)

    def _losses(self, outputs: Tensor, support: Tensor, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        answers = self.classes_[self._link()(outputs, support).argmax(1).numpy()]
        known = np.isin(y, self.classes_)
        losses = np.ones(len(y))  # a label that was never seen has no output: the largest loss
        targets = one_hot(np.searchsorted(self.classes_, y[known]), len(self.classes_))
        losses[known] = clipped_losses(outputs[torch.from_numpy(known)], targets)
        return losses, answers != y
