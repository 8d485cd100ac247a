"""What hyperparameters are learned by: closed-form values and gradients.

No objective differentiates through a factorisation. Each returns ``dq/dK`` for the kernel matrix K, which the
kernel itself turns into gradients in its parameters (see ``docs/notation.md`` for the symbols):

========================  =============================================================================
``"rademacher"``          training loss + tau r, the bound of Eq. (12) of [Hsu2018]_
``"empirical-risk"``      training loss alone
``"held-out"``            loss on one part of the rows by the embedding of the other + tau r, Eq. (13)
``"leave-one-out"``       loss at each row by the embedding of all others + tau r
``"folds"``               loss at each fold by the embedding of the other folds + tau r
========================  =============================================================================

The loss is the clipped cross entropy of Eq. (7) ("log"), "brier", or "calibrated": the cross entropy of the
probabilities that the power map makes of the outputs, with the map's two numbers fitted at every evaluation.
"""

from kernelwright.objectives.objective import Evaluation, Hyperparameters, Objective, value_and_gradient

__all__ = ["Evaluation", "Hyperparameters", "Objective", "value_and_gradient"]
