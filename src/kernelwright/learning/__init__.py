"""Learning methods for hyperparameters: the values of ``learn=``, and the optimisers.

==================  ===============================================================================
word                object
==================  ===============================================================================
``"auto"``          :class:`Auto`, the library's own recipe
``"rademacher"``    :class:`Rademacher`, the complexity bound of Eq. (12) of [Hsu2018]_
``"held-out"``      :class:`HeldOut`, Eq. (13)
``"leave-one-out"``  :class:`LeaveOneOut`
``"folds"``         :class:`Folds`
``"regularised-folds"``  :class:`RegularisedFolds`, of [Song2013]_
``"empirical-risk"``  :class:`EmpiricalRisk`
``"cross-validation"``  :class:`CrossValidation`, a grid
``"median"``        :class:`Median`, the median heuristic
``None``            :class:`Given`, everything as given
==================  ===============================================================================
"""

from typing import Any

from kernelwright.inputs.options import option_of
from kernelwright.learning.base import Choice, Given, LearningMethod, LearningTask, Median
from kernelwright.learning.grid import CrossValidation
from kernelwright.learning.loop import Step, train
from kernelwright.learning.methods import EmpiricalRisk, Folds, HeldOut, LeaveOneOut, Rademacher
from kernelwright.learning.optimisers import LBFGS, Adam
from kernelwright.learning.prior import ComplexityPrior
from kernelwright.learning.recipes import Auto
from kernelwright.learning.regularised import RegularisedFolds
from kernelwright.objectives.losses import EPSILON

__all__ = [
    "LBFGS",
    "METHODS",
    "Adam",
    "Auto",
    "Choice",
    "ComplexityPrior",
    "CrossValidation",
    "EmpiricalRisk",
    "Folds",
    "Given",
    "HeldOut",
    "LearningMethod",
    "LearningTask",
    "LeaveOneOut",
    "Median",
    "Rademacher",
    "RegularisedFolds",
    "Step",
    "choose",
    "clip_of",
    "learning_method",
    "train",
]

METHODS: dict[str, type[LearningMethod]] = {
    method.word: method
    for method in (
        Auto,
        Rademacher,
        HeldOut,
        LeaveOneOut,
        Folds,
        RegularisedFolds,
        EmpiricalRisk,
        CrossValidation,
        Median,
    )
}


def learning_method(given: Any, owner: str) -> LearningMethod:
    """Return the learning method behind a ``learn`` argument: a word, an object, or None."""
    return Given() if given is None else option_of(given, METHODS, "learn", owner, kind=LearningMethod)


def clip_of(method: LearningMethod) -> float:
    """Return the clip of the cross entropy that a method learns with; of a method without one, the published clip."""
    if isinstance(method, (Rademacher, HeldOut, LeaveOneOut, Folds, EmpiricalRisk)):
        return method.epsilon
    return EPSILON


def choose(method: LearningMethod, task: LearningTask) -> Choice:
    """Choose a kernel's parameters and the ridge. The kernel of the task is changed: pass a copy."""
    task.kernel.prepare_(task.data.points, task.data.weights)
    return method.choose(task)


def __dir__() -> list[str]:
    return __all__
