"""What classifiers with calibrated probabilities share: predictions, risk bounds and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
from torch import Tensor

from kernelwright.embedding.entropy import clip_entropy, embedding_entropy
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import CalibrationWarning, OverfitWarning
from kernelwright.estimators.base import by_chunks, part_of
from kernelwright.inputs.dask_rows import dask_mean, is_dask
from kernelwright.inputs.labels import one_hot
from kernelwright.uncertainty.bounds import LeftOutLoss, RiskBound, clipped_losses, left_out_estimate
from kernelwright.uncertainty.calibration import Link
from kernelwright.uncertainty.risk import RiskTerms, check_method, held_out_bound, training_bound

__all__ = ["ProbabilityClassifier", "warn_of_bad_fit"]

NOWHERE = 0.1  # support below which raw outputs say nothing


class ProbabilityClassifier(ClassifierMixin):
    """All that is predicted from raw outputs. A subclass has ``_outputs_and_support`` and leaves a link behind."""

    classes_: np.ndarray
    class_weight: Any
    class_weight_: np.ndarray  # what the rows of each class are weighted by, relative to each other
    _outputs_and_support: Callable[[Any], tuple[Tensor, Tensor]]  # of each row
    complexity_: float
    link_: Link
    _risk: RiskTerms
    _holdout: tuple[np.ndarray, np.ndarray] | None  # losses and wrong answers at rows that were kept from the fit

    probability_map_ = part_of("link_", "probability_map")
    class_prior_ = part_of("link_", "prior")
    trust_ = part_of("link_", "trust")

    @by_chunks
    def raw_outputs(self, X: Any) -> np.ndarray:
        """Return ``f(x)`` of Eq. (5), a column for each class: estimates of probabilities that may leave [0, 1]."""
        return self._outputs_and_support(X)[0].numpy()

    @by_chunks
    def decision_function(self, X: Any) -> np.ndarray:
        """Return raw outputs (Eq. 5); for two classes the second less the first, as scikit-learn has it."""
        outputs = self.raw_outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    @by_chunks
    def predict_proba(self, X: Any, *, unweighted: bool = False) -> np.ndarray:
        """Return calibrated probabilities, a column for each of ``classes_``.

        Where a row has less :meth:`support` than is usual, they are drawn to the class frequencies, and far from all
        training rows they are these (except with ``probability="clip"``, which is Eq. (6) to the letter).

        Parameters
        ----------
        X : array-like
        unweighted : bool, default=False
            With ``class_weight`` probabilities are those of the weighted population, in which each class is as
            frequent as its weight makes it, and so are the answers of :meth:`predict`. ``True`` gives those of rows as
            they come: each divided by the weight of its class, and brought to sum one again.
        """
        return np.exp(self.predict_log_proba(X, unweighted=unweighted))

    @by_chunks
    def predict_log_proba(self, X: Any, *, unweighted: bool = False) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`."""
        outputs, support = self._outputs_and_support(X)
        log_p = self.link_(outputs, support)
        if unweighted:
            log_p = torch.log_softmax(log_p - torch.from_numpy(self.class_weight_).log(), 1)
        return log_p.numpy()

    def predict_with_support(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`predict_proba` and :meth:`support` at the price of one of them."""
        outputs, support = self._outputs_and_support(X)
        return self.link_(outputs, support).exp().numpy(), support.numpy()

    @by_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Return the class of largest probability."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows (of their weight) whose class is predicted right."""
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        return dask_mean(self._hits, X, y, sample_weight)

    def _hits(self, X: Any, y: Any) -> np.ndarray:
        return (self.predict(X) == np.asarray(y)).astype(np.float64)

    @by_chunks
    def support(self, X: Any) -> np.ndarray:
        """Return how much the training rows say about each row.

        It is the kernel's value with the nearest training row (for explicit features one over the leverage), in units
        of what only a hundredth of the training rows stay below with respect to the others. So about one row in a
        hundred of the same kind lies below 1; many rows below 1 are rows of another kind, and near 0 the model
        has nothing to go by. Where inputs are squashed or features periodic, it falls beyond the range of the
        training rows as a kernel on plain inputs would.

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

    @by_chunks
    def entropy(self, X: Any, method: str = "embedding", *, clip: bool = False) -> np.ndarray:
        """Return the entropy (in nats) of the label at each row: high at class boundaries and far from the data.

        Both estimates are made of raw outputs. Where a row has almost no :meth:`support` (below 0.1), these say
        nothing, and the entropy goes over to that of the class frequencies.

        Parameters
        ----------
        X : array-like
        method : {"embedding", "clip"}
            The embedding's own estimate, Eq. (37), or the entropy of the clip-normalised outputs, Eq. (33).
        clip : bool, default=False
            Lift the estimates of "embedding" that are slightly negative to zero.
        """
        if method not in ("embedding", "clip"):
            raise ValueError(
                f"The 'method' parameter of entropy must be 'embedding' or 'clip'. Got {method!r} instead."
            )
        outputs, support = self._outputs_and_support(X)
        found = clip_entropy(outputs) if method == "clip" else embedding_entropy(outputs, clip=clip)
        trust = (support / NOWHERE).clamp(max=1.0)
        prior = torch.from_numpy(self.class_prior_)
        return torch.where(trust < 1.0, trust * found - (1.0 - trust) * (prior * prior.log()).sum(), found).numpy()

    def risk_bound(
        self, method: str = "rademacher", X: Any = None, y: Any = None, *, beta: float = 0.05, loss: str = "clipped"
    ) -> RiskBound:
        """Bound the expected loss at new rows; the record prints as a table.

        Parameters
        ----------
        method : str, default="rademacher"
            "rademacher" is Theorem 4 of [Hsu2018]_, Eq. (11). It is almost always vacuous. "rademacher-fixed-kernel"
            has 4e / sqrt(n) in place of 4e, and holds where the kernel was learned from other rows than the embedding
            (``kernel_share`` of the learning method) or not learned at all. "holdout", the tightest, needs rows that
            were not fitted: pass them, or let ``fit`` keep some (``holdout_share`` of the learning method).
            "leave-one-out" is an estimate with no guarantee, and an upper limit (``upper``) that holds about as often
            as it says. For an exact solution of up to 2000 rows it learns anew without each of ten parts, once.
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
        check_method(method, loss)
        if method == "holdout":
            return held_out_bound(*self._held_out(X, y), loss, beta)
        if X is not None or y is not None:
            raise ValueError(f"Only method='holdout' takes rows. Got some with method={method!r}.")
        if method == "leave-one-out":
            refitted, n_parts = self._refitted_losses()
            return left_out_estimate(self._risk.left_out[loss], loss, beta, refitted.get(loss), n_parts)
        return training_bound(self._risk, method, self.complexity_, beta)

    def _refitted_losses(self) -> tuple[dict[str, LeftOutLoss], int]:
        """Return losses of rows left out of everything, and of how many parts; none where that is not at hand."""
        return {}, 0

    def _held_out(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return clipped losses and wrong answers at given rows, or at those that ``fit`` has kept."""
        if X is None and y is None:
            if self._holdout is None:
                raise ValueError(
                    "A held-out bound needs rows that were not fitted. Pass them, risk_bound('holdout', X, y), or fit "
                    "EmbeddingClassifier(learn=learning.Auto(holdout_share=0.3)), which keeps some for this."
                )
            return self._holdout
        if X is None or y is None:
            raise ValueError("Held-out rows need both X and y.")
        y = column_or_1d(y)
        outputs, support = self._outputs_and_support(X)
        check_consistent_length(outputs, y)
        return self._losses(outputs, support, y)

    def _losses(self, outputs: Tensor, support: Tensor, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        answers = self.classes_[self.link_(outputs, support).argmax(1).numpy()]
        known = np.isin(y, self.classes_)
        losses = np.ones(len(y))  # a label that was never seen has no output: the largest loss
        targets = one_hot(np.searchsorted(self.classes_, y[known]), len(self.classes_))
        losses[known] = clipped_losses(outputs[torch.from_numpy(known)], targets)
        return losses, answers != y


FITTED, APART, JUDGED_FROM = 0.98, 0.3, 20  # shares of rows that are told, and rows below which luck decides


def warn_of_bad_fit(answers: Tensor, fitted: TrainingSet, log_p: Tensor, left_out: TrainingSet) -> None:
    """Warn where rows left out contradict the fit: predicted no better than by chance, or far better than stated.

    ``answers`` are the numbers of the classes named at fitted rows, ``log_p`` those of probabilities at rows left out.
    """
    if left_out.n_units < JUDGED_FROM:
        return
    labels, w = left_out.targets.argmax(1), left_out.weights / left_out.total_weight
    right, sure = float(w @ (log_p.argmax(1) == labels).double()), float(w @ log_p.exp().amax(1))
    most = float((w @ left_out.targets).max())
    told = float(fitted.weights @ (answers == fitted.targets.argmax(1)).double()) / fitted.total_weight
    if told >= FITTED and right <= most and told - right > APART:
        warnings.warn(
            f"The model overfits: it tells {100 * told:.0f} % of its training rows, but only {100 * right:.0f} % of "
            f"the rows that are left out, where the most frequent class alone would tell {100 * most:.0f} %. Use "
            "learn='auto', a larger ridge or a longer length scale; or there is nothing to learn.",
            OverfitWarning,
            stacklevel=4,
        )
    elif right - sure > APART:
        warnings.warn(
            f"The probabilities are far too timid: {100 * right:.0f} % of the rows that are left out are told right, "
            f"with a mean confidence of {100 * sure:.0f} %. Use learn='auto' or more rows of each class, or trust only "
            "the order of the classes.",
            CalibrationWarning,
            stacklevel=4,
        )
