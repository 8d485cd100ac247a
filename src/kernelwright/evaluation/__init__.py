"""Evaluate class probabilities: scores with intervals, and cross-validation next to baselines on the same folds.

All functions are pure: they take probabilities (n x classes) and integer labels, which index the columns, and return
frozen records of plain data, which can be saved with a model and plotted later. Intervals are 95 % intervals and treat
the rows as independent.
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
