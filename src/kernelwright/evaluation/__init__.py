"""Evaluate predictions: scores with intervals, and cross-validation next to baselines on the same folds.

All functions are pure. They take probabilities (n x classes) and integer labels, or predictions of numbers and the
numbers, and return frozen records of plain data, which can be saved with a model and plotted later. Intervals are 95 %
intervals and treat the rows as independent.
"""

from kernelwright.evaluation.class_quality import ClassQuality, class_quality, never_right
from kernelwright.evaluation.cross_validation import (
    Evaluation,
    HardRow,
    Rival,
    cross_validate,
    hardest_rows,
    prediction_sets,
)
from kernelwright.evaluation.folds import forward_folds, grouped_folds, number_folds, stratified_folds
from kernelwright.evaluation.habits import Stretch, confidence_sentence, confidence_stretches
from kernelwright.evaluation.number_scores import NumberPredictions, NumberScores, around_residuals, score_numbers
from kernelwright.evaluation.numbers import (
    HardNumber,
    NumberEvaluation,
    NumberRival,
    cross_validate_numbers,
    predictions_of,
)
from kernelwright.evaluation.scores import Score, Scores, score

__all__ = [
    "ClassQuality",
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
    "Stretch",
    "around_residuals",
    "class_quality",
    "confidence_sentence",
    "confidence_stretches",
    "cross_validate",
    "cross_validate_numbers",
    "forward_folds",
    "grouped_folds",
    "hardest_rows",
    "never_right",
    "number_folds",
    "prediction_sets",
    "predictions_of",
    "score",
    "score_numbers",
    "stratified_folds",
]
