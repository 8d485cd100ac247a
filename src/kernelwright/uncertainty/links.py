"""The link from raw outputs and support to probabilities, fitted to left-out rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.numerics.threads import threads_for
from kernelwright.uncertainty.calibration import Link, ProbabilityMap, fit_map, fit_shifted_power, trust_in
from kernelwright.uncertainty.line import fit_line

__all__ = ["FittedLink", "LeftOutOutputs", "fit_link"]


@dataclass(frozen=True)
class LeftOutOutputs:
    """Outputs and support of rows by an embedding that has not seen them, used to fit a link."""

    outputs: Tensor
    rows: TrainingSet
    support: Tensor


@dataclass(frozen=True)
class FittedLink:
    """A link, the shift of the prior of the outputs, and log probabilities at the rows used to fit it."""

    link: Link
    shift: Tensor
    log_p: Tensor


def fit_link(
    how: Any,
    left_out: LeftOutOutputs,
    frequencies: Tensor,
    *,
    n: float,
    shifts: bool = False,
    for_line: TrainingSet | None = None,
) -> FittedLink:
    """Fit a probability map, and the trust in it, to outputs at left-out rows.

    Parameters
    ----------
    how : {"power", "softmax", "clip"} or estimator
    left_out : LeftOutOutputs
    frequencies : Tensor
        Class frequencies among all fitted rows.
    n : float
        The number of all rows (or groups).
    shifts : bool
        Whether a power map may shift the prior of the outputs for better calibration.
    for_line : TrainingSet, optional
        Fitted rows, whose points are the views of a table, for a logistic regression beside the map.
    """
    outputs, rows = left_out.outputs, left_out.rows
    shift = torch.zeros_like(rows.prior)
    kept = frequencies if bool(rows.prior.any()) else None  # only if outputs shrink towards them
    probability_map: ProbabilityMap
    with threads_for(0):  # many operations on few numbers
        if isinstance(how, str) and how == "power" and shifts:
            probability_map, shift = fit_shifted_power(outputs, rows.targets, rows.weights, kept)
        else:
            probability_map = fit_map(how, outputs, rows.targets, rows.weights, kept)
    line = None
    if for_line is not None:
        with threads_for(len(for_line)):
            line = fit_line(for_line, rows, probability_map.log(outputs + shift))
    link, of_line = Link(probability_map, frequencies, line=line), None if line is None else line.left_out
    log_p = link(outputs + shift, left_out.support, of_line)
    if isinstance(how, str):
        link = replace(link, trust=trust_in(log_p, rows.targets, rows.weights, n))
        log_p = link(outputs + shift, left_out.support, of_line)
    return FittedLink(link, shift, log_p)
