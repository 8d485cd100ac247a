"""Evaluate predictions: scores with intervals, and cross-validation next to baselines on the same folds.

All functions are pure. They take probabilities (n x classes) and integer labels, or predictions of numbers and the
numbers, and return frozen records of plain data, which can be saved with a model and plotted later. Intervals are 95 %
intervals and treat the rows as independent.
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
from kernelwright.evaluation.number_scores import NumberPredictions, NumberScores, around_residuals, score_numbers
from kernelwright.evaluation.numbers import (
    HardNumber,
    NumberEvaluation,
    NumberRival,
    cross_validate_numbers,
    number_folds,
    predictions_of,
)
from kernelwright.evaluation.scores import Score, Scores, score

__all__ = [
    "Evaluation",
    "HardNumber",
    "HardRow",
    "NumberEvaluation",
    "NumberPredictions",
    "NumberRival",
    "NumberScores",
    "Rival",
    "Score",
    "Scores",
    "around_residuals",
    "cross_validate",
    "cross_validate_numbers",
    "hardest_rows",
    "number_folds",
    "prediction_sets",
    "predictions_of",
    "score",
    "score_numbers",
    "stratified_folds",
]
