"""Training objectives: the objects of ``learn=`` as objectives of a mini-batch."""

from __future__ import annotations

from typing import Any

from kernelwright.learning import HeldOut, LearningMethod, Rademacher
from kernelwright.objectives import HeldOutObjective, Objective, RademacherObjective
from kernelwright.objectives.losses import loss_named
from kernelwright.objectives.splits import LastRows

__all__ = ["WORDS", "batch_objective", "network_method"]

METHODS: dict[str, type[Rademacher] | type[HeldOut]] = {method.word: method for method in (Rademacher, HeldOut)}
WORDS = {"auto", *METHODS}
USUAL_WEIGHT, USUAL_CLIP = "4e/n", 0.1  # much better than the published clip of 1e-15, whose gradients 1 / f are spikes
ELSEWHERE = {
    "optimizer": "A network is trained by Adam: training=networks.Training(learning_rate=...).",
    "batch_size": "Set the size of mini-batches in training=networks.Training(batch_size=...).",
    "kernel_share": "The network and its embedding learn from the same rows.",
    "holdout_share": "Pass held-out rows to risk_bound('holdout', X, y).",
}


def network_method(given: Any, owner: str) -> Rademacher | HeldOut | None:
    """Return the method that the parameter ``learn`` stands for; None is the automatic choice, "auto"."""
    if isinstance(given, str) and given == "auto":
        return None
    if isinstance(given, LearningMethod) and not isinstance(given, (Rademacher, HeldOut)):
        raise ValueError(
            f"The 'learn' parameter of {owner} must be 'auto', Rademacher() or HeldOut(), or a short form of these: a "
            f"network learns by Eq. (12) or Eq. (13). Got {given!r} instead."
        )
    method = METHODS[given]() if isinstance(given, str) else given.checked()
    for name, why in ELSEWHERE.items():
        if getattr(method, name) is not None:
            raise ValueError(f"{owner} does not use {name}={getattr(method, name)!r} of {type(method).__name__}. {why}")
    return method


def batch_objective(method: Rademacher | HeldOut | None, *, few_rows: bool) -> Objective:
    """Return the objective of a mini-batch: Eq. (12), or Eq. (13) with the last part of the batch held out.

    With None, half of each batch is held out if it has ``few_rows`` for its features: otherwise the embedding could fit
    the batch perfectly, whatever the features.
    """
    if method is None:
        method = (HeldOut if few_rows else Rademacher)(USUAL_WEIGHT, epsilon=USUAL_CLIP)
    loss = loss_named(method.loss, method.epsilon)
    if isinstance(method, HeldOut):
        return HeldOutObjective(method.complexity_weight, loss, folds=LastRows(method.share))
    return RademacherObjective(method.complexity_weight, loss)
