"""A support vector machine for kernel matrices that may be indefinite."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from torch import Tensor

from kernelwright.errors import NumericalError
from kernelwright.similarity.indefinite import Signature, correct

__all__ = ["KreinMachine", "best_cost", "fit_machine", "pair_coefficients"]

MOST_STEPS = 10_000_000  # of the solver, which may not converge on some matrices; it warns when it stops here
COST_FACTORS = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class KreinMachine:
    """The pairwise machines of a corrected kernel matrix, to be used with uncorrected rows of kernel values."""

    coefficients: np.ndarray  # P a of each pair of classes: a row for each pair, a column for each training point
    intercept: np.ndarray
    support: np.ndarray  # indices of the support vectors
    C: float
    signature: Signature  # of the matrix before correction


def fit_machine(
    K: Tensor,
    labels: np.ndarray,
    weights: np.ndarray,
    *,
    C: float | str = 1.0,
    correction: str = "clip",
    tol: float = 1e-3,
) -> KreinMachine:
    """Correct a kernel matrix, fit a support vector machine, and fold the correction into its coefficients.

    Parameters
    ----------
    K : Tensor of shape (n, n)
    labels : ndarray of int
        Class indices, from 0.
    weights : ndarray
        Row weights, as factors of C.
    C : float or "auto"
        "auto" is :func:`best_cost`.
    correction : str
        As in :func:`kernelwright.similarity.indefinite.correct`.
    tol : float
        Accuracy of the solver.
    """
    corrected = correct(K, correction)
    try:
        cost = best_cost(corrected.matrix, labels, weights) if isinstance(C, str) else float(C)
        machine = SVC(C=cost, kernel="precomputed", tol=tol, random_state=0, max_iter=MOST_STEPS)
        machine.fit(corrected.matrix.numpy(), labels, sample_weight=weights)
    except ValueError as error:
        if "not finite" not in str(error):
            raise
        raise NumericalError(
            "The support vector machine found no finite solution: kernel values go up to "
            f"{float(corrected.matrix.abs().max()):.1e}. Likely causes: (a) inputs of an unbounded kernel that "
            "are not standardised; (b) an outlier; (c) a very large C."
        ) from error
    folded = corrected.transform(torch.from_numpy(pair_coefficients(machine, labels))).numpy()
    return KreinMachine(folded, machine.intercept_, machine.support_, cost, corrected.signature)


def best_cost(K: Tensor, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the cost with the best accuracy in up to five folds (the smallest if tied), in units of 1/spread."""
    spread = float(K.diagonal().mean() - K.mean())  # mean squared distance from the mean, in the feature space
    unit = 1.0 / spread if spread > 0 else 1.0
    if np.bincount(labels).min() < 2:
        return unit  # a class is too small to be left out
    folds = StratifiedKFold(int(np.clip(np.bincount(labels).min(), 2, 5)), shuffle=True, random_state=0)
    search = GridSearchCV(
        SVC(kernel="precomputed", random_state=0, max_iter=MOST_STEPS),
        {"C": [unit * factor for factor in COST_FACTORS]},
        cv=folds,
    )
    return float(search.fit(K.numpy(), labels, sample_weight=weights).best_params_["C"])


def pair_coefficients(machine: SVC, labels: np.ndarray) -> np.ndarray:
    """Return the coefficients of all training rows in the output of each pair of classes.

    SVC stores them packed: in the machine of classes i < j, a support vector of class i has its coefficient in row
    j - 1 of ``dual_coef_``, and one of class j in row i.
    """
    pairs = list(combinations(range(len(machine.classes_)), 2))
    of_support = labels[machine.support_]
    alpha = np.zeros((len(pairs), len(labels)))
    for row, (i, j) in enumerate(pairs):
        first, second = of_support == i, of_support == j
        alpha[row, machine.support_[first]] = machine.dual_coef_[j - 1, first]
        alpha[row, machine.support_[second]] = machine.dual_coef_[i, second]
    return alpha
