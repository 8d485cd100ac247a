"""Naive formulas to compare the library with: loops, explicit inverses, refits.

This file does not import kernelwright. Kernels are functions of two points. Objectives exist twice: in numpy (values)
and in torch (gradients by autograd through a Cholesky factor).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

Pair = Callable[[Any, Any], float]


# Kernels of two points ---------------------------------------------------------------------------------------


def gram(pair: Pair, X: Sequence[Any], Z: Sequence[Any] | None = None) -> np.ndarray:
    Z = X if Z is None else Z
    return np.array([[pair(x, z) for z in Z] for x in X], dtype=float).reshape(len(X), len(Z))


def _scaled_distance(x: np.ndarray, z: np.ndarray, lengthscale: Any) -> float:
    return math.sqrt(sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, _each(lengthscale, x), strict=True)))


def _each(lengthscale: Any, x: np.ndarray) -> list[float]:
    return [float(s) for s in np.broadcast_to(lengthscale, np.shape(x))]


def gaussian(lengthscale: Any) -> Pair:
    return lambda x, z: math.exp(-(_scaled_distance(x, z, lengthscale) ** 2) / 2)


def laplace(lengthscale: Any) -> Pair:
    return lambda x, z: math.exp(-sum(abs(a - b) / s for a, b, s in zip(x, z, _each(lengthscale, x), strict=True)))


def matern(lengthscale: Any, nu: float) -> Pair:
    def pair(x: np.ndarray, z: np.ndarray) -> float:
        d = _scaled_distance(x, z, lengthscale)
        if nu == 0.5:
            return math.exp(-d)
        if nu == 1.5:
            return (1 + math.sqrt(3) * d) * math.exp(-math.sqrt(3) * d)
        return (1 + math.sqrt(5) * d + 5 * d**2 / 3) * math.exp(-math.sqrt(5) * d)

    return pair


def rational_quadratic(lengthscale: Any, mixture: float) -> Pair:
    return lambda x, z: (1 + _scaled_distance(x, z, lengthscale) ** 2 / (2 * mixture)) ** (-mixture)


def linear(x: np.ndarray, z: np.ndarray) -> float:
    return float(sum(a * b for a, b in zip(x, z, strict=True)))


def polynomial(degree: int, lengthscale: float, offset: float) -> Pair:
    return lambda x, z: (linear(x, z) / lengthscale**2 + offset) ** degree


def angular(lengthscale: float) -> Pair:
    def pair(x: np.ndarray, z: np.ndarray) -> float:
        lengths = math.hypot(*x) * math.hypot(*z)
        cosine = sum(a * b for a, b in zip(x, z, strict=True)) / lengths if lengths else 0.0
        return math.exp((cosine - 1.0) / lengthscale**2)

    return pair


def brownian(origin: Any) -> Pair:
    def norm(x: np.ndarray) -> float:
        return math.sqrt(sum(a * a for a in x))

    return lambda x, z: (norm(x - np.array(origin)) + norm(z - np.array(origin)) - norm(x - z)) / 2


def tabular(lengthscale: Any, smooth: float, rank_scale: float, weights: Sequence[float]) -> Pair:
    def pair(x: np.ndarray, z: np.ndarray) -> float:
        half = len(x) // 2
        steps = laplace(lengthscale)(x[:half], z[:half])
        scales = np.array(_each(lengthscale, x[:half]))
        relevance = scales / math.prod(scales) ** (1 / half)
        blob = gaussian(smooth * np.sqrt(relevance))(x[:half], z[:half])
        ranks = laplace(np.asarray(lengthscale) * rank_scale)(x[half:], z[half:])
        return weights[0] * steps + weights[1] * blob + weights[2] * ranks

    return pair


def spectrum(k: int, normalize: bool) -> Pair:
    def kmers(s: str) -> Counter[str]:
        return Counter(s[i : i + k] for i in range(len(s) - k + 1))

    def common(s: str, t: str) -> int:
        return sum(count * kmers(t)[word] for word, count in kmers(s).items())

    def pair(s: str, t: str) -> float:
        if not normalize:
            return float(common(s, t))
        scale = math.sqrt(common(s, s) * common(t, t))
        return common(s, t) / scale if scale else 0.0

    return pair


# Distances ---------------------------------------------------------------------------------------------------


def lower_median_of_distances(points: Sequence[np.ndarray], order: int) -> float:
    """Return the lower median of the positive distances between all pairs."""
    distances = sorted(
        d
        for i in range(len(points))
        for j in range(i)
        if (d := float(np.linalg.norm(points[i] - points[j], ord=order))) > 0
    )
    return distances[(len(distances) - 1) // 2] if distances else 1.0


# Losses and the embedding ------------------------------------------------------------------------------------


def log_loss(F: np.ndarray, Y: np.ndarray, w: np.ndarray, epsilon: float) -> float:
    total = 0.0
    for f, y, weight in zip(F, Y, w, strict=True):
        own = float(f[int(np.argmax(y))])
        total += weight * -math.log(min(max(own, epsilon), 1.0))
    return total / float(np.sum(w))


def brier(F: np.ndarray, Y: np.ndarray, w: np.ndarray, epsilon: float = 0.0) -> float:
    return sum(weight * float(((f - y) ** 2).sum()) for f, y, weight in zip(F, Y, w, strict=True)) / float(np.sum(w))


def noise(w: np.ndarray, ridge: float) -> np.ndarray:
    return np.array([ridge * sum(w) / weight for weight in w])


def outputs(K_new: np.ndarray, K: np.ndarray, Y: np.ndarray, diagonal: np.ndarray, prior: Any = 0.0) -> np.ndarray:
    """Compute ``prior + k(x)^T (K + diagonal)^-1 (Y - prior)``."""
    return prior + K_new @ np.linalg.inv(K + np.diag(diagonal)) @ (Y - prior)


def squared_norm(K: np.ndarray, Y: np.ndarray, diagonal: np.ndarray, prior: Any = 0.0) -> float:
    V = np.linalg.inv(K + np.diag(diagonal)) @ (Y - prior)
    return float(np.trace(V.T @ K @ V))


def leave_one_out(
    K: np.ndarray, Y: np.ndarray, w: np.ndarray, ridge: float, prior: Any = 0.0, groups: np.ndarray | None = None
) -> np.ndarray:
    """Refit once per row: without the row, whatever its weight, or without all rows of its group."""
    F, diagonal = np.empty_like(Y), noise(w, ridge)
    groups = np.arange(len(K)) if groups is None else groups
    for i in range(len(K)):
        keep = np.flatnonzero(groups != groups[i])
        F[i] = outputs(K[i][keep], K[np.ix_(keep, keep)], Y[keep], diagonal[keep], prior)
    return F


# Objectives, with numpy --------------------------------------------------------------------------------------


def objective(
    name: str,
    K: np.ndarray,
    Y: np.ndarray,
    w: np.ndarray,
    ridge: float,
    *,
    tau: float,
    sup: float,
    loss: str,
    epsilon: float,
    folds: np.ndarray,
    prior: Any = 0.0,
    groups: np.ndarray | None = None,
) -> float:
    measure = {"log": log_loss, "brier": brier}[loss]
    everything = noise(w, ridge)
    if name in ("rademacher", "empirical-risk"):
        value = measure(outputs(K, K, Y, everything, prior), Y, w, epsilon)
        return value + (0 if name == "empirical-risk" else tau * math.sqrt(sup * squared_norm(K, Y, everything, prior)))
    if name == "leave-one-out":
        value = measure(leave_one_out(K, Y, w, ridge, prior, groups), Y, w, epsilon)
        return value + tau * math.sqrt(sup * squared_norm(K, Y, everything, prior))
    if name == "held-out":
        T, B = np.flatnonzero(folds == 0), np.flatnonzero(folds != 0)
        own = noise(w[T], ridge)
        value = measure(outputs(K[np.ix_(B, T)], K[np.ix_(T, T)], Y[T], own, prior), Y[B], w[B], epsilon)
        return value + tau * math.sqrt(sup * squared_norm(K[np.ix_(T, T)], Y[T], own, prior))
    assert name in ("folds", "regularised-folds")
    F, norms = np.empty_like(Y), []
    for fold in sorted(set(folds)):
        T, B = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        F[B] = outputs(K[np.ix_(B, T)], K[np.ix_(T, T)], Y[T], everything[T], prior)
        norm = squared_norm(K[np.ix_(T, T)], Y[T], everything[T], prior)
        norms.append(math.sqrt(sup * norm) if name == "folds" else ridge * norm)
    return measure(F, Y, w, epsilon) + tau * sum(norms) / len(norms)


def turns(labels: np.ndarray, n_folds: int) -> np.ndarray:
    """Assign folds: the rows of each class in turn, one class after the other."""
    folds, turn = np.empty(len(labels), dtype=int), 0
    for label in sorted(set(labels)):
        for row in np.flatnonzero(labels == label):
            folds[row] = turn % n_folds
            turn += 1
    return folds


# Objectives, with torch: autograd goes through the factorisation ---------------------------------------------


def _torch_loss(F: Tensor, Y: Tensor, w: Tensor, loss: str, epsilon: float) -> Tensor:
    if loss == "brier":
        return (w[:, None] * (F - Y) ** 2).sum() / w.sum()
    return -(w * (F * Y).sum(1).clamp(epsilon, 1.0).log()).sum() / w.sum()


def _torch_fit(K: Tensor, Y: Tensor, diagonal: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
    """Return the coefficients and the squared norm."""
    V = torch.cholesky_solve(Y - prior, torch.linalg.cholesky(K + torch.diag(diagonal)))
    return V, (V * (K @ V)).sum()


def torch_objective(
    name: str,
    K: Tensor,
    Y: Tensor,
    w: Tensor,
    ridge: Tensor,
    *,
    tau: float,
    sup: Tensor,
    loss: str,
    epsilon: float,
    folds: np.ndarray,
    prior: Tensor,
    groups: np.ndarray | None = None,
) -> Tensor:
    everything = ridge * w.sum() / w
    groups = np.arange(len(K)) if groups is None else groups
    if name in ("rademacher", "empirical-risk", "leave-one-out"):
        V, norm = _torch_fit(K, Y, everything, prior)
        if name == "leave-one-out":
            rows = []
            for i in range(len(K)):
                keep = torch.from_numpy(np.flatnonzero(groups != groups[i]))
                V_i, _ = _torch_fit(K[keep][:, keep], Y[keep], everything[keep], prior)
                rows.append(prior + K[i, keep] @ V_i)
            F = torch.stack(rows)
        else:
            F = prior + K @ V
        value = _torch_loss(F, Y, w, loss, epsilon)
        return value if name == "empirical-risk" else value + tau * (sup * norm).sqrt()
    trains = [folds == 0] if name == "held-out" else [folds != fold for fold in np.unique(folds)]
    F, tested, complexity = [], [], []
    for train in trains:
        T, B = torch.from_numpy(np.flatnonzero(train)), torch.from_numpy(np.flatnonzero(~train))
        diagonal = ridge * w[T].sum() / w[T] if name == "held-out" else everything[T]
        V, norm = _torch_fit(K[T][:, T], Y[T], diagonal, prior)
        F.append(prior + K[B][:, T] @ V)
        tested.append(B)
        complexity.append(ridge * norm if name == "regularised-folds" else (sup * norm).sqrt())
    rows = torch.cat(tested)
    return _torch_loss(torch.cat(F), Y[rows], w[rows], loss, epsilon) + tau * torch.stack(complexity).mean()


# Probabilities -----------------------------------------------------------------------------------------------


def clip_normalise(F: np.ndarray) -> np.ndarray:
    rows = []
    for f in F:
        positive = [max(float(v), 0.0) for v in f]
        total = sum(positive)
        rows.append([v / total for v in positive] if total > 0 else [1 / len(f)] * len(f))
    return np.array(rows)


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def power_map(F: np.ndarray, sharpness: float, softness: float, frequencies: Any = None) -> np.ndarray:
    def positive(f: Any) -> Any:
        return (f + np.sqrt(np.square(f) + 4 * softness**2)) / 2

    pi = np.full(F.shape[1], 1 / F.shape[1]) if frequencies is None else np.asarray(frequencies)
    p = pi * (positive(F) / positive(pi)) ** sharpness
    return p / p.sum(1, keepdims=True)


def cross_entropy(p: np.ndarray, targets: np.ndarray, w: np.ndarray) -> float:
    return float(-(w[:, None] * targets * np.log(p)).sum() / w.sum())


def expected_calibration_error(p: np.ndarray, labels: np.ndarray, n_bins: int) -> float:
    total = 0.0
    for b in range(n_bins):
        inside = [
            i
            for i in range(len(p))
            if b / n_bins <= p[i].max() < (b + 1) / n_bins or (b == n_bins - 1 and p[i].max() == 1)
        ]
        if inside:
            confidence = np.mean([p[i].max() for i in inside])
            accuracy = np.mean([float(np.argmax(p[i]) == labels[i]) for i in inside])
            total += len(inside) / len(p) * abs(confidence - accuracy)
    return total
