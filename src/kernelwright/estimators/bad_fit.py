"""Warnings if leave-one-out predictions contradict a fit."""

from __future__ import annotations

import warnings

from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import CalibrationWarning, OverfitWarning

__all__ = ["warn_of_bad_fit"]

FITTED, APART, JUDGED_FROM = 0.98, 0.3, 20  # accuracies, and the number of rows below which they are too noisy


def warn_of_bad_fit(answers: Tensor, fitted: TrainingSet, log_p: Tensor, left_out: TrainingSet) -> None:
    """Warn if leave-one-out predictions contradict the fit: no better than chance, or much better than stated.

    ``answers`` are the predicted class indices at fitted rows, ``log_p`` the log probabilities at rows left out.
    """
    if left_out.n_units < JUDGED_FROM:
        return
    labels, w = left_out.targets.argmax(1), left_out.weights / left_out.total_weight
    right, sure = float(w @ (log_p.argmax(1) == labels).double()), float(w @ log_p.exp().amax(1))
    most = float((w @ left_out.targets).max())
    told = float(fitted.weights @ (answers == fitted.targets.argmax(1)).double()) / fitted.total_weight
    if told >= FITTED and right <= most and told - right > APART:
        warnings.warn(
            f"The model overfits: its accuracy is {100 * told:.0f} % on training rows, but only {100 * right:.0f} % on "
            f"rows left out, where always predicting the most frequent class has {100 * most:.0f} %. Use "
            "learn='auto', a larger ridge or a longer length scale. Or the inputs say nothing about the classes.",
            OverfitWarning,
            stacklevel=4,
        )
    elif right - sure > APART:
        warnings.warn(
            f"The probabilities are underconfident: the accuracy on rows left out is {100 * right:.0f} %, but the mean "
            f"confidence is {100 * sure:.0f} %. Use learn='auto' or more rows of each class, or use only the order of "
            "the classes.",
            CalibrationWarning,
            stacklevel=4,
        )
