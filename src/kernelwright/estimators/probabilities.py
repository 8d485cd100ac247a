"""The base of classifiers with calibrated probabilities: predictions and risk bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
from torch import Tensor

from kernelwright.embedding.entropy import clip_entropy, embedding_entropy
from kernelwright.estimators.answers import AnswersInFrames, in_frames, the_classes
from kernelwright.estimators.base import by_chunks, part_of
from kernelwright.estimators.compressing import refuse_if_compressed
from kernelwright.estimators.importance import MeasuresColumns
from kernelwright.inputs.dask_rows import dask_mean, is_dask
from kernelwright.inputs.labels import one_hot
from kernelwright.uncertainty.bounds import LARGEST_CLIP, LeftOutLoss, RiskBound, clipped_losses, left_out_estimate
from kernelwright.uncertainty.calibration import Link
from kernelwright.uncertainty.risk import RiskTerms, check_method, held_out_bound, training_bound

__all__ = ["ProbabilityClassifier"]

SMALLEST = 1e-15  # a probability of zero would have an infinite loss
NOWHERE = 0.1  # support below which raw outputs carry no information


class ProbabilityClassifier(AnswersInFrames, ClassifierMixin, MeasuresColumns):
    """Predictions from raw outputs. A subclass implements ``_outputs_and_support`` and stores a fitted link."""

    classes_: np.ndarray
    class_weight: Any
    class_weight_: np.ndarray  # relative weights of the classes
    _outputs_and_support: Callable[[Any], tuple[Tensor, Tensor]]  # of each row
    _new_points: Callable[[Any], Tensor]  # as the kernel sees them
    _at_new_points: Callable[[Any], tuple[Tensor, Tensor, Tensor]]  # the same, with outputs and support
    complexity_: float
    link_: Link
    _risk: RiskTerms
    _holdout: tuple[np.ndarray, np.ndarray] | None  # losses and errors at held-out rows
    loss_measure = "log loss"

    probability_map_ = part_of("link_", "probability_map")
    class_prior_ = part_of("link_", "prior")
    trust_ = part_of("link_", "trust")

    @in_frames(the_classes)
    @by_chunks
    def raw_outputs(self, X: Any) -> np.ndarray:
        """Return ``f(x)`` of Eq. (5), one column per class: estimates of probabilities that may be outside [0, 1]."""
        return self._outputs_and_support(X)[0].numpy()

    @in_frames(the_classes)
    @by_chunks
    def decision_function(self, X: Any) -> np.ndarray:
        """Return raw outputs (Eq. 5); for two classes the second minus the first, as in scikit-learn.

        If a logistic regression stands beside the embedding (``link_.line``), raw outputs alone do not decide: these
        are then log probabilities.
        """
        check_is_fitted(self)
        outputs = self.raw_outputs(X) if self.link_.line is None else self.predict_log_proba(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    @in_frames(the_classes)
    @by_chunks
    def predict_proba(self, X: Any, *, unweighted: bool = False) -> np.ndarray:
        """Return calibrated probabilities, one column for each of ``classes_``.

        If a row has less :meth:`support` than usual, they move towards the class frequencies, and far from all training
        rows they equal them (except with ``probability="clip"``, which is exactly Eq. (6)).

        Parameters
        ----------
        X : array-like
        unweighted : bool, default=False
            With ``class_weight``, the probabilities (and :meth:`predict`) are for the weighted population, in which the
            frequency of a class is multiplied by its weight. ``True`` gives those of the unweighted population: each is
            divided by the weight of its class, and they are normalised again.
        """
        return np.exp(self.predict_log_proba(X, unweighted=unweighted))

    @in_frames(the_classes)
    @by_chunks
    def predict_log_proba(self, X: Any, *, unweighted: bool = False) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`."""
        log_p = self._log_p_and_support(X)[0]
        if unweighted:
            log_p = torch.log_softmax(log_p - torch.from_numpy(self.class_weight_).log(), 1)
        return log_p.numpy()

    def losses_of_rows(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Return minus the logarithm of the probability of the class y of each row, at most 34.5 (of 1e-15)."""
        if len(unknown := np.setdiff1d(y, self.classes_)):
            raise ValueError(f"The model does not know the classes {list(unknown)}. It knows {list(self.classes_)}.")
        places = np.searchsorted(self.classes_, y)
        return -np.log(np.maximum(np.asarray(self.predict_proba(X))[np.arange(len(y)), places], SMALLEST))

    @in_frames(the_classes)
    def predict_with_support(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`predict_proba` and :meth:`support` at the cost of one of them."""
        log_p, support = self._log_p_and_support(X)
        return log_p.exp().numpy(), support.numpy()

    def _log_p_and_support(self, X: Any) -> tuple[Tensor, Tensor]:
        if "link_" not in vars(self) or self.link_.line is None:
            outputs, support = self._outputs_and_support(X)  # raises an error before the fit
            return self.link_(outputs, support, None), support
        points, outputs, support = self._at_new_points(X)  # rows are checked and scaled once for both
        return self.link_(outputs, support, self.link_.of_line(points)), support

    def line_log_p(self, X: Any) -> Tensor | None:
        """Return log probabilities by the logistic regression beside the embedding; None if there is none."""
        return None if self.link_.line is None else self.link_.line.log(self._new_points(X))

    @in_frames()
    @by_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Return the class of largest probability."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the (weighted) share of rows whose class is predicted correctly."""
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        return dask_mean(self._hits, X, y, sample_weight)

    def _hits(self, X: Any, y: Any) -> np.ndarray:
        return (np.asarray(self.predict(X)) == np.asarray(y)).astype(np.float64)

    @in_frames()
    @by_chunks
    def support(self, X: Any) -> np.ndarray:
        """Return how well the training rows support a prediction at each row.

        It is the largest kernel value with a training row (for explicit features, one over the leverage), divided by
        the 1 % quantile of the same number for training rows left out. So about one row in a hundred from the same
        distribution is below 1. Many rows below 1 mean another distribution, and near 0 the model has no information.
        With squashed inputs or periodic features, it also falls outside the range of the training rows, as a kernel on
        plain inputs would.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from kernelwright import EmbeddingClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EmbeddingClassifier(random_state=0).fit(X[::2], y[::2])
        >>> bool(np.mean(model.support(X[1::2]) < 1) < 0.1), model.support(X[:1] + 100.0).round(3)
        (True, array([0.]))
        """
        return self._outputs_and_support(X)[1].numpy()

    @in_frames()
    @by_chunks
    def entropy(self, X: Any, method: str = "embedding", *, clip: bool = False, pure: bool = False) -> np.ndarray:
        """Return the entropy (in nats) of the label at each row: high at class boundaries and far from the data.

        Both estimates use raw outputs. If a row has almost no :meth:`support` (below 0.1), these carry no information,
        and the entropy moves to that of the class frequencies, unless ``pure``.

        Parameters
        ----------
        X : array-like
        method : {"embedding", "clip"}
            The embedding's own estimate, Eq. (37), or the entropy of the clip-normalised outputs, Eq. (33).
        clip : bool, default=False
            Set slightly negative estimates of "embedding" to zero.
        pure : bool, default=False
            The equation as printed for every row: far from the data Eq. (37) goes to zero, as if all were certain, and
            Eq. (33) to the entropy of rounding errors.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kernelwright import EmbeddingClassifier, kernels
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EmbeddingClassifier(kernels.Gaussian(), learn="rademacher").fit(X, y)
        >>> far = X[:1] + 100.0
        >>> model.entropy(far).round(3), model.entropy(far, pure=True).round(3)  # log 3, and zero
        (array([1.099]), array([0.]))
        """
        if method not in ("embedding", "clip"):
            raise ValueError(
                f"The 'method' parameter of entropy must be 'embedding' or 'clip'. Got {method!r} instead."
            )
        outputs, support = self._outputs_and_support(X)
        found = clip_entropy(outputs) if method == "clip" else embedding_entropy(outputs, clip=clip)
        if pure:
            return found.numpy()
        trust = (support / NOWHERE).clamp(max=1.0)
        prior = torch.from_numpy(self.class_prior_)
        return torch.where(trust < 1.0, trust * found - (1.0 - trust) * (prior * prior.log()).sum(), found).numpy()

    def risk_bound(
        self,
        method: str = "rademacher",
        X: Any = None,
        y: Any = None,
        *,
        beta: float = 0.05,
        loss: str = "clipped",
        epsilon: float | None = None,
    ) -> RiskBound:
        """Bound the expected loss at new rows; the record prints as a table.

        Parameters
        ----------
        method : str, default="rademacher"
            "rademacher" is Theorem 4 of [Hsu2018]_, Eq. (11). It is almost always vacuous. "rademacher-fixed-kernel"
            has 4e / sqrt(n) instead of 4e. It holds if the kernel was learned from other rows than the embedding
            (``kernel_share`` of the learning method) or not learned at all. "holdout", the tightest, needs held-out
            rows: pass them, or let ``fit`` hold some out (``holdout_share`` of the learning method). "leave-one-out" is
            an estimate without guarantee; its upper limit (``upper``) holds about as often as stated. For an exact
            solution of up to 2000 rows, its first call refits the model without each of ten folds.
        X, y : array-like, optional
            Rows that the model has never seen, for "holdout". They must be independent: only one row of each group.
        beta : float, default=0.05
            The bound may fail with this probability.
        loss : {"clipped", "error"}, default="clipped"
            Cross entropy of the raw outputs clipped at 1/e, or the error rate (only for "holdout" and
            "leave-one-out").
        epsilon : float or None, default=None
            ``None`` bounds the loss clipped at 1/e, as Theorem 4 does; its training loss is clipped as it was learned
            (``epsilon`` of the learning method). A number up to 1/e bounds the loss clipped there, which is at most
            ``-log(epsilon)``: by lemma 15 of the long version of [Hsu2018]_ for "rademacher", by the same step for
            "rademacher-fixed-kernel", and for the rows that are passed to "holdout".

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
        check_method(method, loss, epsilon)
        refuse_if_compressed(self, method)
        if method == "holdout":
            return held_out_bound(*self._held_out(X, y, epsilon), loss, beta, epsilon)
        if X is not None or y is not None:
            raise ValueError(f"Only method='holdout' takes X and y. Got them with method={method!r}.")
        if method == "leave-one-out":
            refitted, n_parts = self._refitted_losses()
            return left_out_estimate(self._risk.left_out[loss], loss, beta, refitted.get(loss), n_parts)
        return training_bound(self._risk, method, self.complexity_, beta, epsilon)

    def _refitted_losses(self) -> tuple[dict[str, LeftOutLoss], int]:
        """Return the losses at rows left out of learning too, and the number of folds; empty if not available."""
        return {}, 0

    def _held_out(self, X: Any, y: Any, epsilon: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Return clipped losses and errors at given rows, or at those that ``fit`` has held out."""
        if X is None and y is None:
            if epsilon is not None:
                raise ValueError("A held-out bound at another 'epsilon' needs rows: risk_bound('holdout', X, y, ...).")
            if self._holdout is None:
                raise ValueError(
                    "A held-out bound needs rows that were not fitted. Pass them, risk_bound('holdout', X, y), or fit "
                    "EmbeddingClassifier(learn=learning.Auto(holdout_share=0.3)), which holds some out."
                )
            return self._holdout
        if X is None or y is None:
            raise ValueError("Held-out rows need both X and y.")
        y = column_or_1d(y)
        outputs, support = self._outputs_and_support(X)
        check_consistent_length(outputs, y)
        log_p = self.link_(outputs, support, self.line_log_p(X))
        return self._losses(outputs, log_p, y, LARGEST_CLIP if epsilon is None else epsilon)

    def _losses(
        self, outputs: Tensor, log_p: Tensor, y: np.ndarray, epsilon: float = LARGEST_CLIP
    ) -> tuple[np.ndarray, np.ndarray]:
        answers = self.classes_[log_p.argmax(1).numpy()]
        known = np.isin(y, self.classes_)
        losses = np.full(len(y), -np.log(epsilon))  # an unknown label has no output and gets the largest loss
        targets = one_hot(np.searchsorted(self.classes_, y[known]), len(self.classes_))
        losses[known] = clipped_losses(outputs[torch.from_numpy(known)], targets, epsilon)
        return losses, answers != y
