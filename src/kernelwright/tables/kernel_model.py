"""A kernel learned from a table of objects and their similarities, and its error on new objects."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kernelwright.estimators import HyperKernelRidge
from kernelwright.evaluation.scores import Score
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.preparing import Finding, prepare, with_days
from kernelwright.inputs.frames.table import as_table
from kernelwright.storage.saved import saved
from kernelwright.tables.model import versions
from kernelwright.tables.pipelines import make_encoder

__all__ = ["KernelEvaluation", "KernelModel", "held_out_error"]

FEWEST = 8  # objects needed to hold some out
PAIRS = 5000  # kept for pictures
SHOWN = 400  # objects whose given similarities are kept for pictures


@saved("kernel-evaluation")
@dataclass(frozen=True)
class KernelEvaluation:
    """The error of a learned kernel on held-out objects.

    Parameters
    ----------
    protocol : str
        How it was measured, in words.
    objects : tuple of str
        Names of the held-out objects.
    error : Score
        Root mean squared error over pairs with at least one held-out object, in the unit of the similarities.
    spread : float
        Standard deviation of the true values: predicting a constant has about this error.
    rivals : dict of str to Score
        The same error of a constant, and of copying the similarities of the nearest known object.
    truth, learned : ndarray
        True and learned similarities of up to 5000 of the pairs.
    seconds : float
    """

    protocol: str
    objects: tuple[str, ...]
    error: Score
    spread: float
    rivals: dict[str, Score]
    truth: np.ndarray
    learned: np.ndarray
    seconds: float = 0.0

    def summary(self) -> dict[str, Any]:
        """Return the results without the pairs, as plain data."""
        return {
            "protocol": self.protocol,
            "objects": len(self.objects),
            "error": asdict(self.error),
            "spread": self.spread,
            "rivals": {name: asdict(score) for name, score in self.rivals.items()},
            "seconds": self.seconds,
        }


@saved("kernel-model")
@dataclass(frozen=True)
class KernelModel:
    """A learned kernel, together with the encoder for the columns of a table.

    Parameters
    ----------
    encoder : sklearn.pipeline.Pipeline
        Turns a table into numbers.
    learner : HyperKernelRidge
        Fitted; its ``kernel_`` takes encoded rows.
    columns : tuple of Column
    identifier : str or None
        The column that names the objects.
    objects : tuple of str
        Names of the objects that it was learned from.
    points, given : ndarray
        Up to 400 of the objects in encoded form, and their given similarities.
    evaluation : KernelEvaluation or None
    notes : tuple of str
    settings : dict
    versions : dict of str to str

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kernelwright.tables import KernelModel, as_table, describe_columns
    >>> frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["height", "weight"])
    >>> distances = np.linalg.norm(frame.to_numpy()[:, None] - frame.to_numpy(), axis=-1)
    >>> columns = describe_columns(as_table(frame))
    >>> model = KernelModel.fit(columns, frame, -distances, objects=[str(i) for i in range(30)])
    >>> model.predict(frame[:5], frame[:3]).shape
    (5, 3)
    """

    encoder: Pipeline
    learner: HyperKernelRidge
    columns: tuple[Column, ...]
    objects: tuple[str, ...]
    points: np.ndarray
    given: np.ndarray
    identifier: str | None = None
    evaluation: KernelEvaluation | None = None
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        columns: Sequence[Column],
        rows: Any,
        similarities: np.ndarray,
        *,
        objects: Sequence[str],
        seed: int = 0,
        **rest: Any,
    ) -> KernelModel:
        """Learn from all objects; ``similarities`` has NaN for unknown pairs."""
        frame, _ = prepare(columns, rows)
        encoder = Pipeline([("encode", make_encoder(columns)), ("scale", StandardScaler())])
        frame = with_days(frame)
        encoder.fit(frame)
        X = encoder.transform(frame)
        learner = HyperKernelRidge(random_state=seed).fit(X, similarities)
        some = np.unique(np.linspace(0, len(X) - 1, min(len(X), SHOWN)).astype(int))
        shown = X[some], similarities[np.ix_(some, some)]
        return cls(encoder, learner, tuple(columns), tuple(objects), *shown, versions=versions(), **rest)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that the kernel uses."""
        return tuple(column.name for column in self.columns if column.used)

    def encode(self, rows: Any) -> tuple[np.ndarray, list[Finding]]:
        """Encode the rows of a Table or data frame, and list what was not in the training table."""
        frame, findings = prepare(self.columns, rows)
        return self.encoder.transform(with_days(frame)), findings

    def predict(self, rows: Any, others: Any = None) -> np.ndarray:
        """Compute the kernel between the rows of one table, or of two."""
        X = self.encode(rows)[0]
        return self.learner.predict(X, None if others is None else self.encode(others)[0])


def held_out_error(
    columns: Sequence[Column],
    rows: Any,
    similarities: np.ndarray,
    *,
    objects: Sequence[str],
    share: float = 0.25,
    seed: int = 0,
) -> KernelEvaluation | None:
    """Measure the error on held-out objects; return None if there are too few objects."""
    n, random = len(similarities), np.random.default_rng(seed)
    n_out = round(share * n)
    if n < FEWEST or n_out < 2 or n - n_out < 3:
        return None
    out = np.zeros(n, dtype=bool)
    out[random.permutation(n)[:n_out]] = True
    inner = similarities[np.ix_(~out, ~out)]
    connected = np.flatnonzero(~out)[~np.isnan(inner).all(1)]  # objects without any known similarity are of no use
    known = similarities[np.ix_(connected, connected)]
    asked = ~np.isnan(similarities) & (out[:, None] | out)
    if len(connected) < 3 or not asked.any() or np.nanstd(known) == 0:
        return None
    started = time.perf_counter()
    table = as_table(rows)
    model = KernelModel.fit(columns, table.take(connected), known, objects=(), seed=seed)
    X, _ = model.encode(table)
    learned = model.learner.predict(X)
    nearest = connected[pairwise_distances_argmin(X, X[connected])]
    nearest[connected] = connected
    constant = np.full_like(similarities, np.nanmean(known))
    copied = similarities[np.ix_(nearest, nearest)]
    guesses = {"constant": constant, "nearest known object": np.where(np.isnan(copied), constant, copied)}
    pairs = np.flatnonzero(np.triu(asked).ravel())
    shown = np.sort(random.permutation(pairs)[:PAIRS])
    return KernelEvaluation(
        protocol=f"{n_out} of {n} objects held out; error over all known pairs with at least one held-out object",
        objects=tuple(np.asarray(objects, dtype=object)[out]),
        error=_error(learned - similarities, asked, out),
        spread=float(similarities[asked].std()),
        rivals={name: _error(guess - similarities, asked, out) for name, guess in guesses.items()},
        truth=similarities.ravel()[shown],
        learned=learned.ravel()[shown],
        seconds=time.perf_counter() - started,
    )


def _error(gap: np.ndarray, asked: np.ndarray, out: np.ndarray) -> Score:
    """Return the root mean square, with a bootstrap interval over held-out objects (with all their pairs)."""
    squares = np.where(asked, gap, 0.0)[out] ** 2
    # A pair of two held-out objects occurs twice, and counts half each time.
    halves = np.where(out, 0.5, 1.0)
    sums, counts = (squares * halves).sum(1), (asked[out] * halves).sum(1)
    random = np.random.default_rng(0)
    rows = random.integers(len(sums), size=(400, len(sums)))
    total = counts[rows].sum(1)
    samples = np.sqrt(sums[rows].sum(1)[total > 0] / total[total > 0])
    low, high = np.quantile(samples, [0.025, 0.975])
    return Score(float(np.sqrt(sums.sum() / counts.sum())), float(low), float(high))
