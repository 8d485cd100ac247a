"""Objectives for learning hyperparameters, with closed-form values and gradients.

No objective differentiates through a factorisation. In its dual form each returns ``dq/dK`` for the kernel matrix K,
which the kernel itself converts to gradients in its parameters; in its primal form ``dq/dZ`` for explicit features Z
(see ``docs/notation.md`` for the symbols):

=============================  =============================================================================
``RademacherObjective``        training loss + tau r, the bound of Eq. (12) of [Hsu2018]_
``EmpiricalRiskObjective``     training loss alone
``HeldOutObjective``           loss on one part of the rows by the embedding of the other + tau r, Eq. (13)
``LeaveOneOutObjective``       loss at each row by the embedding of all others + tau r
``FoldsObjective``             loss at each fold by the embedding of the other folds + tau r
``RegularisedFoldsObjective``  the same with ``tau lambda |U|^2`` in the place of tau r, as [Song2013]_ has it
=============================  =============================================================================

The loss is the clipped cross entropy of Eq. (7), the Brier loss, or the cross entropy of calibrated probabilities.
"""

from kernelwright.objectives.base import Objective
from kernelwright.objectives.evaluate import objective_named, value_and_gradient
from kernelwright.objectives.in_sample import EmpiricalRiskObjective, RademacherObjective
from kernelwright.objectives.leave_one_out import LeaveOneOutObjective
from kernelwright.objectives.losses import BrierLoss, CalibratedLogLoss, ClippedLogLoss
from kernelwright.objectives.splits import FoldsObjective, HeldOutObjective, RegularisedFoldsObjective
from kernelwright.objectives.terms import Hyperparameters, ObjectiveValue

__all__ = [
    "BrierLoss",
    "CalibratedLogLoss",
    "ClippedLogLoss",
    "EmpiricalRiskObjective",
    "FoldsObjective",
    "HeldOutObjective",
    "Hyperparameters",
    "LeaveOneOutObjective",
    "Objective",
    "ObjectiveValue",
    "RademacherObjective",
    "RegularisedFoldsObjective",
    "objective_named",
    "value_and_gradient",
]
