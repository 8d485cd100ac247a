"""How good are class probabilities: scores with intervals, and cross-validation next to rivals on the same folds.

Everything is a pure function of probabilities (n x classes) and integer labels that number their columns; what comes
out is a frozen record of plain data, so that it can be saved with a model and drawn later. Intervals are at 95 % and
treat the rows as independent.
"""

from kernelwright.evaluation.cross_validation import (
    Evaluation,
    HardRow,
    Rival,
    cross_validate,
    hardest_rows,
    prediction_sets,
    stratified_folds,
)
from kernelwright.evaluation.scores import Score, Scores, score

__all__ = [
    "Evaluation",
    "HardRow",
    "Rival",
    "Score",
    "Scores",
    "cross_validate",
    "hardest_rows",
    "prediction_sets",
    "score",
    "stratified_folds",
]
