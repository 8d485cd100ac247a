"""Whether a linear trend pays: judged by leave-one-out loss, in closed form."""

from __future__ import annotations

import copy

import torch

from kernelwright.embedding.dual import embed
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.kernels import Kernel, WithTrend
from kernelwright.learning.polish import RIDGE_MOVES, RIDGE_STEP, Place, descend
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives.losses import Loss, half_log

__all__ = ["find_trend"]

STARTS = (0.05, 0.8)  # amplitudes to try first; if none pays, there is no trend
AMPLITUDE_STEP = 4.0
LEAST_GAIN = 4.0  # of half the logarithm of the loss, times the rows: useless trends have gained up to 3.6


def find_trend(
    kernel: Kernel, ridge: float, rows: TrainingSet, loss: Loss, everything: TrainingSet
) -> tuple[WithTrend, float] | None:
    """Return the kernel with a linear trend, and the ridge that goes with it; None if a trend does not pay.

    The kernel should have few learned numbers: one that was fitted closely to the rows has used up what a trend could
    explain, and its leave-one-out loss is too good.

    Parameters
    ----------
    kernel : Kernel
        On the views of a table; it does not change.
    ridge : float
        The ridge for ``rows``, and for the returned one too.
    rows : TrainingSet
        Rows that judge.
    loss : Loss
    everything : TrainingSet
        All rows; they set the scale of the columns.
    """
    made = WithTrend(copy.deepcopy(kernel))
    made.prepare_(everything.points, everything.weights)
    with torch.no_grad(), threads_for(len(rows)):
        judge = _Judge(made, ridge, rows, loss)
        without = judge(0.0)
        start = min(STARTS, key=judge)
        if not judge(start) < without:
            return None
        _, without = descend(lambda at: judge(0.0, RIDGE_STEP ** at[1]), moves=RIDGE_MOVES)

        def value(at: Place) -> float:
            return judge(start * AMPLITUDE_STEP ** at[0], RIDGE_STEP ** at[1])

        place, best = descend(value)
    if not rows.n_units * (without - best) > LEAST_GAIN:
        return None
    made.amplitude = start * AMPLITUDE_STEP ** place[0]
    return made, ridge * RIDGE_STEP ** place[1]


class _Judge:
    """Half the logarithms of leave-one-out losses, for amplitudes of the trend and factors on the ridge."""

    def __init__(self, kernel: WithTrend, ridge: float, rows: TrainingSet, loss: Loss) -> None:
        B = kernel.lines(rows.points)
        self.local, self.trend = kernel.local.matrix(rows.points), B @ B.T
        self.ridge, self.rows, self.loss = ridge, rows, loss
        self.seen: dict[tuple[float, float], float] = {}

    def __call__(self, amplitude: float, factor: float = 1.0) -> float:
        if (amplitude, factor) not in self.seen:
            self.seen[amplitude, factor] = self._loss(amplitude, factor)
        return self.seen[amplitude, factor]

    def _loss(self, amplitude: float, factor: float) -> float:
        K = torch.add(self.local, self.trend, alpha=amplitude)
        try:
            outputs = embed(K, self.rows, factor * self.ridge).leave_one_out()
        except NumericalError:
            return torch.inf
        return half_log(self.loss, self.loss(outputs, self.rows)[0])
