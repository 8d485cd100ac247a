"""Maps from raw outputs to probabilities.

Our own maps keep the order of the classes, with two exceptions: "clip" makes all negative outputs equal, and a power
map that keeps the class frequencies preserves the order only if these are equal. Maps with parameters are fitted to
leave-one-out outputs. Targets are smoothed by a third of a row; without this, separable data would require infinite
confidence. Any scikit-learn calibrator can be used instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor

from kernelwright.embedding.dual import clip_normalise
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.line import LogisticLine, pooled

__all__ = [
    "ClipMap",
    "EstimatorMap",
    "Link",
    "PowerMap",
    "ProbabilityMap",
    "SoftmaxMap",
    "calibrated_log_loss",
    "drawn_to_prior",
    "fit_map",
    "fit_shifted_power",
    "trust_by_evidence",
    "trust_in",
]


class ProbabilityMap:
    """A map from rows of raw outputs to rows of probabilities."""

    returns_to_prior = True  # whether rows far from all data get the class frequencies instead

    def __call__(self, outputs: Tensor) -> Tensor:
        """Return probabilities; each row sums to one."""
        return self.log(outputs).exp()

    def log(self, outputs: Tensor) -> Tensor:
        """Return log probabilities, without underflow if there is a formula for them."""
        raise NotImplementedError


@saved("clip-map")
@dataclass(frozen=True)
class ClipMap(ProbabilityMap):
    """Clip and normalise, Eq. (6) of [Hsu2018]_. It has no parameters and is under-confident."""

    returns_to_prior = False

    def log(self, outputs: Tensor) -> Tensor:  # noqa: D102
        return clip_normalise(outputs).log()


@saved("softmax-map")
@dataclass(frozen=True)
class SoftmaxMap(ProbabilityMap):
    """``p_k ~ exp(sharpness F_k)``."""

    sharpness: float

    def log(self, outputs: Tensor) -> Tensor:  # noqa: D102
        return torch.log_softmax(self.sharpness * outputs, 1)


@saved("power-map")
@dataclass(frozen=True)
class PowerMap(ProbabilityMap):
    """``p_k ~ pi_k (h(F_k) / h(pi_k))^sharpness``, ``h(F) = (F + sqrt(F^2 + 4 softness^2)) / 2``: a soft positive part.

    pi are the class frequencies: outputs equal to them are mapped to themselves, whatever the sharpness.
    """

    sharpness: float
    softness: float
    frequencies: tuple[float, ...] | None = None  # None: all equal

    def log(self, outputs: Tensor) -> Tensor:  # noqa: D102
        return torch.log_softmax(self.logits(outputs), 1)

    def logits(self, outputs: Tensor) -> Tensor:
        """Return log probabilities up to a constant in each row."""
        found = self.sharpness * self.log_positive_part(outputs)[0]
        return found if self.frequencies is None else found + self._offsets()

    def _offsets(self) -> Tensor:
        pi = torch.tensor(self.frequencies, dtype=torch.float64)
        return pi.log() - self.sharpness * self.log_positive_part(pi)[0]

    def log_positive_part(self, F: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``log h(F)`` and its derivatives in F and in log softness, without cancellation for negative F."""
        root = torch.hypot(F, torch.full_like(F, 2.0 * self.softness))
        h = torch.where(F > 0, 0.5 * (F + root), 2.0 * self.softness**2 / (root - F))
        return h.log(), 1.0 / root, 2.0 * self.softness**2 / (root * h)


@saved("estimator-map")
@dataclass(frozen=True)
class EstimatorMap(ProbabilityMap):
    """Fitted scikit-learn calibrators: one classifier of raw outputs, or one regressor for each class."""

    calibrators: tuple[Any, ...]
    n_classes: int
    smallest: float  # lower limit for probabilities of zero, which so few rows cannot support: a share of one more row

    @classmethod
    def fit(cls, calibrator: Any, outputs: Tensor, targets: Tensor, weights: Tensor) -> EstimatorMap:
        """Fit copies of a calibrator: a classifier to all outputs at once, or a regressor for each class."""
        F, Y, w = outputs.numpy(), targets.numpy(), weights.numpy()
        given = {"sample_weight": w} if has_fit_parameter(calibrator, "sample_weight") else {}
        n_classes, smallest = Y.shape[1], 1.0 / (Y.shape[1] * (w.sum() + 1.0))
        if is_classifier(calibrator):
            return cls((clone(calibrator).fit(F, Y.argmax(1), **given),), n_classes, smallest)
        columns = zip(F.T, Y.T, strict=True)
        return cls(tuple(clone(calibrator).fit(f[:, None], y, **given) for f, y in columns), n_classes, smallest)

    def log(self, outputs: Tensor) -> Tensor:  # noqa: D102
        F = outputs.numpy()
        p = np.zeros((len(F), self.n_classes))
        if is_classifier(self.calibrators[0]):
            p[:, self.calibrators[0].classes_] = self.calibrators[0].predict_proba(F)
        else:
            for k, calibrator in enumerate(self.calibrators):
                p[:, k] = calibrator.predict(F[:, k, None])
        if np.isnan(p).any():
            raise ValueError(
                f"The calibrator {self.calibrators[0]!r} fails for some raw outputs. Choose another one, such "
                "as IsotonicRegression(out_of_bounds='clip')."
            )
        p = np.clip(p, self.smallest, 1.0)
        return torch.from_numpy(np.log(p / p.sum(1, keepdims=True)))


def drawn_to_prior(log_p: Tensor, support: Tensor, prior: Tensor) -> Tensor:
    """Return the logarithm of ``s p + (1 - s) prior``, where s is the relative support of a row, at most one.

    A map that is calibrated near the data may be wrong far from them: there, raw outputs are the class frequencies, and
    a steep map would turn 0.7 into 0.95.
    """
    trust = support.clamp(0.0, 1.0)[:, None]
    mixed = torch.logaddexp(log_p + trust.log(), prior.log() + (1.0 - trust).log())
    return torch.where(trust < 1.0, mixed, log_p)


@saved("probability-link")
@dataclass(frozen=True)
class Link:
    """A map from raw outputs and support of rows to log probabilities."""

    probability_map: ProbabilityMap
    prior: Tensor  # class frequencies
    trust: float = 1.0  # in the model; the rest of the weight goes to the class frequencies
    line: LogisticLine | None = None  # beside the map

    def __call__(self, outputs: Tensor, support: Tensor, of_line: Tensor | None = None) -> Tensor:
        """Return a row of log probabilities for each row; ``of_line`` are those by the line, if there is one."""
        log_p = self.probability_map.log(outputs)
        if self.line is not None:
            if of_line is None:
                raise ValueError("This link has a line. Pass its log probabilities too: link.of_line(points).")
            log_p = pooled(log_p, of_line, self.line.weight)
        if not self.probability_map.returns_to_prior:
            return log_p
        return drawn_to_prior(log_p, self.trust * support.clamp(0.0, 1.0), self.prior)

    def of_line(self, points: Tensor) -> Tensor | None:
        """Return log probabilities by the line at points as the kernel sees them; None if there is no line."""
        return None if self.line is None else self.line.log(points)


# With this many rows, trust is one half without evidence; this many nats of evidence remove the doubt.
FEW_ROWS, MUCH_EVIDENCE = 18.0, 15.0


def trust_in(log_p: Tensor, targets: Tensor, weights: Tensor, n: float) -> float:
    """Return the trust in the probabilities of left-out rows, relative to the class frequencies; at most one.

    ``1 / (1 + (18 / n)^3 / (1 + (E / 15)^4))`` with E the evidence: the number of nats by which left-out rows are
    predicted better than by the frequencies of the other rows. With a handful of rows, the best of many kernels looks
    good by luck, and the same rows cannot show this; from a hundred rows on nothing changes. n is the number of all
    rows (or groups), even if only some are left out. The constants were chosen on tables of pure noise and of weak
    signals with 15 to 60 rows, and checked on others by ``robustness/goals.py`` (``noise``).
    """
    weights, m = weights * (n / float(weights.sum())), targets.shape[1]
    of_others = (weights @ targets - weights[:, None] * targets + 1.0 / m) / (n - weights + 1.0)[:, None]
    gains = ((log_p - of_others.clamp(min=1e-300).log()) * targets).sum(1)
    return trust_by_evidence(float(weights @ gains), n)


def trust_by_evidence(evidence: float, n: float) -> float:
    """Return the trust in a model of n rows, given the nats by which it predicts left-out rows better than none."""
    return 1.0 / (1.0 + (FEW_ROWS / n) ** 3 / (1.0 + (max(evidence, 0.0) / MUCH_EVIDENCE) ** 4))


def fit_map(
    name: Any, outputs: Tensor, targets: Tensor, weights: Tensor, frequencies: Tensor | None = None
) -> ProbabilityMap:
    """Fit the "power", "softmax" or "clip" map, or a scikit-learn calibrator, to outputs at one-hot targets.

    ``frequencies`` are the class frequencies, if outputs shrink towards them: a power map then keeps them.
    """
    if not isinstance(name, str):
        return EstimatorMap.fit(name, outputs, targets, weights)
    if name not in ("power", "softmax", "clip"):
        raise ValueError(f"A probability map must be 'power', 'softmax' or 'clip'. Got {name!r} instead.")
    if name == "clip":
        return ClipMap()
    if name == "power":
        return _fit_power(outputs, targets, weights, POWER_BOUNDS, frequencies)[0]
    cross_entropy = _smoothed_cross_entropy(targets, weights)

    def softmax(theta: np.ndarray) -> tuple[float, np.ndarray]:
        sharpness = float(np.exp(theta[0]))
        value, slope = cross_entropy(sharpness * outputs)
        return value, np.array([sharpness * float((slope * outputs).sum())])

    found = minimize(softmax, np.log([5.0]), jac=True, method="L-BFGS-B", bounds=[(-5.0, 7.0)])
    return SoftmaxMap(float(np.exp(found.x[0])))


SMOOTHING = 0.3  # part of a row added to the targets: the doubt that separable rows leave
# For log sharpness, log softness and the shifts: usual values, their weight in rows, and limits.
POWER_USUAL, POWER_PULL, POWER_BOUNDS = (1.1, -2.4, 0.0), (1.0, 1.0, 200.0), ((-3.0, 4.0), (-9.0, 1.0), (0.0, 0.0))
ANCHORED_USUAL, ANCHORED_PULL = (0.5, -2.4, 0.0), (4.0, 1.0, 200.0)  # the same for maps that keep the frequencies
SHIFTED_BOUNDS = (*POWER_BOUNDS[:2], (-0.5, 0.5))
# While a kernel is learned, an arbitrarily steep map would reward outputs that fit by luck.
LEARNING_BOUNDS = ((-1.0, 2.0), (-1.6, 1.0), (0.0, 0.0))


def fit_shifted_power(
    outputs: Tensor, targets: Tensor, weights: Tensor, frequencies: Tensor | None = None
) -> tuple[PowerMap, Tensor]:
    """Fit a power map for outputs with a shift added for each class; return the map and the shifts (with sum zero).

    Ridge regression shrinks all classes equally towards their frequencies. If one class is more spread out than
    another, the boundary between them is off; a shift corrects this.
    """
    probability_map, shift, _ = _fit_power(outputs, targets, weights, SHIFTED_BOUNDS, frequencies)
    return probability_map, shift


def calibrated_log_loss(
    outputs: Tensor, targets: Tensor, weights: Tensor, frequencies: Tensor | None = None
) -> tuple[float, Tensor]:
    """Return the cross entropy of the outputs under a power map fitted to them, and its gradient in the outputs.

    The map is optimal, so its parameters count as constants in the gradient (the envelope theorem).
    """
    probability_map, _, value = _fit_power(outputs, targets, weights, LEARNING_BOUNDS, frequencies)
    _, d_outputs, _ = probability_map.log_positive_part(outputs)
    _, slope = _smoothed_cross_entropy(targets, weights)(probability_map.logits(outputs))
    return value, slope.mul_(probability_map.sharpness).mul_(d_outputs)


def _fit_power(
    outputs: Tensor,
    targets: Tensor,
    weights: Tensor,
    bounds: tuple[tuple[float, float], ...],
    frequencies: Tensor | None = None,
) -> tuple[PowerMap, Tensor, float]:
    """Fit the power map and the shifts with the least penalised loss; return these and the loss."""
    n = float(weights.sum())
    anchored = frequencies is not None
    pi = torch.full_like(targets[0], 1.0 / targets.shape[1]) if frequencies is None else frequencies
    anchor = tuple(pi.tolist()) if anchored else None
    cross_entropy = _smoothed_cross_entropy(targets, weights)

    def for_all(of_three: tuple[Any, ...]) -> np.ndarray:
        return np.array([*of_three[:2], *[of_three[2]] * targets.shape[1]])

    def parts(theta: np.ndarray) -> tuple[PowerMap, Tensor]:
        sharpness, softness = map(float, np.exp(theta[:2]))
        return PowerMap(sharpness, softness, anchor), torch.from_numpy(theta[2:] - theta[2:].mean())

    usual, pull = map(for_all, (ANCHORED_USUAL, ANCHORED_PULL) if anchored else (POWER_USUAL, POWER_PULL))
    limits = for_all(bounds)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        probability_map, shift = parts(theta)
        log_h, d_outputs, d_softness = probability_map.log_positive_part(outputs + shift)
        log_h_pi, _, d_softness_pi = probability_map.log_positive_part(pi)
        value, slope = cross_entropy(probability_map.logits(outputs + shift))
        slope *= probability_map.sharpness
        in_shift = (slope * d_outputs).sum(0)
        in_sharpness, in_softness = (slope * (log_h - log_h_pi)).sum(), (slope * (d_softness - d_softness_pi)).sum()
        in_theta = [float(in_sharpness), float(in_softness), *(in_shift - in_shift.mean())]
        away = theta - usual
        return value + 0.5 * float(pull @ away**2) / n, np.array(in_theta) + pull * away / n

    start = np.clip(usual, *limits.T)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"ftol": 1e-11, "gtol": 1e-7})
    return *parts(found.x), float(found.fun)


def _smoothed_cross_entropy(targets: Tensor, weights: Tensor) -> Callable[[Tensor], tuple[float, Tensor]]:
    """Return a function of logits: cross entropy against smoothed targets, and its gradient."""
    n, m = float(weights.sum()), targets.shape[1]
    doubt = SMOOTHING / (n + SMOOTHING)
    smoothed = (1.0 - doubt) * targets + doubt / m
    share = (weights / weights.sum())[:, None]

    def value_and_slope(logits: Tensor) -> tuple[float, Tensor]:
        log_p = torch.log_softmax(logits, 1)
        return -float((share * smoothed * log_p).sum()), share * (log_p.exp() - smoothed)

    return value_and_slope
