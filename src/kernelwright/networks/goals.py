"""What a network learns by: the objects of ``learn=`` as objectives of a batch."""

from __future__ import annotations

from typing import Any

from kernelwright.learning import HeldOut, LearningMethod, Rademacher
from kernelwright.objectives import ClippedLogLoss, HeldOutObjective, Objective, RademacherObjective
from kernelwright.objectives.splits import LastRows

__all__ = ["WORDS", "batch_objective", "network_method"]

METHODS: dict[str, type[Rademacher] | type[HeldOut]] = {method.word: method for method in (Rademacher, HeldOut)}
WORDS = {"auto", *METHODS}
USUAL_WEIGHT, USUAL_CLIP = "4e/n", 0.1  # far better than the published clip of 1e-15, whose slopes 1 / f are spikes
ELSEWHERE = {
    "optimizer": "A network is trained by Adam: training=networks.Training(learning_rate=...).",
    "batch_size": "Its batches are those of training=networks.Training(batch_size=...).",
    "kernel_share": "The network and its embedding learn from the same rows.",
    "holdout_share": "Pass rows that were kept from the fit to risk_bound('holdout', X, y).",
}


def network_method(given: Any, owner: str) -> Rademacher | HeldOut | None:
    """Return the method behind what a user passed as ``learn``; None is the network's own choice, "auto"."""
    if isinstance(given, str) and given == "auto":
        return None
    if isinstance(given, LearningMethod) and not isinstance(given, (Rademacher, HeldOut)):
        raise ValueError(
            f"The 'learn' parameter of {owner} must be 'auto', Rademacher() or HeldOut(), or the words for them: a "
            f"network learns by Eq. (12) or Eq. (13). Got {given!r} instead."
        )
    method = METHODS[given]() if isinstance(given, str) else given.checked()
    for name, why in ELSEWHERE.items():
        if getattr(method, name) is not None:
            raise ValueError(
                f"{owner} has no use for {name}={getattr(method, name)!r} of {type(method).__name__}. {why}"
            )
    return method


def batch_objective(method: Rademacher | HeldOut | None, *, few_rows: bool) -> Objective:
    """Return the objective of a batch: Eq. (12), or Eq. (13) with the last part of the batch scored.

    With None, half of each batch is scored where it has ``few_rows`` for its features: an embedding could fit these
    whatever they are.
    """
    if method is None:
        method = (HeldOut if few_rows else Rademacher)(USUAL_WEIGHT, epsilon=USUAL_CLIP)
    loss = ClippedLogLoss(method.epsilon)
    if isinstance(method, HeldOut):
        return HeldOutObjective(method.complexity_weight, loss, folds=LastRows(method.share))
    return RademacherObjective(method.complexity_weight, loss)
