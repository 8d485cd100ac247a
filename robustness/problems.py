"""Numbered problems: a number always gives the same data and model, so that any failure can be repeated.

The first numbers are a fixed list: every kind of data with the default model, every kernel with every way to learn,
every solver, and the largest sizes. The others are drawn at random from the same kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from kernelwright.features import RandomFourier
from robustness.data import KINDS, Kind, Random, Sample, ordinary, plain
from robustness.models import FAMILIES, KERNELS, LEARN, Model, any_regressor, classifier, learning, logarithm, solver

__all__ = ["NUMBERS_FROM", "Problem", "problem"]

SEED = 20_240_601
NUMBERS_FROM = 2200  # problems from this one on are about numbers to predict


@dataclass(frozen=True)
class Problem:
    """The data and the model of a problem."""

    number: int
    kind: str
    shape: tuple[int, int, int]  # rows, columns, classes
    change: Kind
    model: Model
    seed: int = SEED

    def __str__(self) -> str:
        n, d, m = self.shape
        return f"problem {self.number}: {self.kind}, {n} rows, {d} columns, {m} classes; {self.model.words}"

    def sample(self) -> Sample:
        """Draw the data in the form that the model takes."""
        rng = np.random.default_rng((self.seed, self.number, 1))
        sample = self.change(ordinary(rng, *self.shape), rng)
        if self.model.words.endswith("kernel precomputed"):
            return _as_gram(sample)
        if self.model.words.endswith("kernel spectrum"):
            sample = _as_strings(sample)
        return _with_targets(sample, self.model.targets, rng)


def problem(number: int, seed: int = SEED) -> Problem:
    """Return the problem with this number."""
    written = _written()
    if number < len(written):
        return replace(written[number], number=number, seed=seed)
    rng = np.random.default_rng((seed, number, 0))
    kind = str(rng.choice(list(SHAPES))) if rng.random() < 0.25 else "any size"
    shape = SHAPES[kind](rng)
    change = plain if kind != "any size" and rng.random() < 0.5 else KINDS[rng.integers(len(KINDS))]
    family = any_regressor if number >= NUMBERS_FROM else _any_family(rng)
    name = _words(change) if change is not plain else kind
    model = family(rng, shape[1])
    n, d, m = shape
    n = min(n, model.most_rows)
    return Problem(number, name, (n, d, min(m, max(2, n // 2))), change, model, seed)


def _any_family(rng: Random) -> Callable[[Random, int], Model]:
    return list(FAMILIES)[rng.choice(len(FAMILIES), p=np.array(list(FAMILIES.values())) / sum(FAMILIES.values()))]


def _words(function: Kind) -> str:
    return function.__name__.replace("_", " ")


# Sizes ---------------------------------------------------------------------------------------------------------


def _up_to(rng: Random, low: int, high: int) -> int:
    """Draw an integer, small ones more often."""
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def _any_size(rng: Random) -> tuple[int, int, int]:
    n = _up_to(rng, 6, 80)
    return n, _up_to(rng, 1, 20), int(rng.integers(2, min(7, n)))


SHAPES: dict[str, Callable[[Random], tuple[int, int, int]]] = {
    "any size": _any_size,
    "two to five rows": lambda rng: (int(rng.integers(2, 6)), _up_to(rng, 1, 10), 2),
    "one column": lambda rng: (_up_to(rng, 6, 200), 1, 2),
    "many columns": lambda rng: (_up_to(rng, 5, 40), _up_to(rng, 100, 2000), 3),
    "many classes": lambda rng: (_up_to(rng, 60, 150), 5, _up_to(rng, 20, 50)),
    "many rows": lambda rng: (_up_to(rng, 150, 400), _up_to(rng, 1, 10), 3),
}


# The fixed list ------------------------------------------------------------------------------------------------


@cache
def _written() -> list[Problem]:
    ordinary_size = (40, 4, 3)
    listed: list[Problem] = []

    def add(change: Kind, shape: tuple[int, int, int], model: Model, kind: str | None = None) -> None:
        listed.append(Problem(len(listed), kind or _words(change), shape, change, model))

    for change in KINDS:
        add(change, ordinary_size, classifier(4))
        add(change, ordinary_size, classifier(4, "Gaussian", learn=None, ridge=1e-12))
        for word in ("nystroem", "herding", "fourier"):
            add(change, ordinary_size, classifier(4, solver=solver(word, 10)))
    for n, m in ((2, 2), (3, 2), (3, 3), (4, 2), (5, 5)):
        for learn in LEARN:
            add(plain, (n, 2, m), classifier(2, learn=learn), "two to five rows")
    harmful = itertools.cycle(KINDS)
    for kernel, learn in itertools.product(KERNELS, LEARN):
        add(next(harmful), ordinary_size, classifier(4, kernel, learn=learning(learn, 10)))
    for n, d, m in ((5000, 3, 2), (400, 2000, 3), (900, 10, 300), (2500, 20, 5)):
        add(plain, (n, d, m), classifier(d), "largest sizes")
    for word in ("nystroem", "herding", "fourier"):
        add(plain, (5000, 5, 3), classifier(5, solver=solver(word, 100)), "largest sizes")
    add(plain, (5000, 5, 3), classifier(5, solver=solver("auto", precision="single")), "largest sizes")
    add(plain, (2000, 5, 3), classifier(5, "Gaussian", learn=learning("rademacher", 5)), "largest sizes")
    fourier = classifier(5)
    explicit = Model("explicit features", "RandomFourier(200)", lambda: _with_fourier(fourier))
    add(plain, (5000, 5, 3), explicit, "largest sizes")
    return listed


def _with_fourier(model: Model):
    return model.make().set_params(features=RandomFourier(200, lengthscale="median"))


# What a model learns from --------------------------------------------------------------------------------------


def _as_gram(sample: Sample) -> Sample:
    """Replace rows by their inner products, in units of the largest number."""
    if not isinstance(sample.X, np.ndarray):
        return sample
    X, new = (np.asarray(table, dtype=np.float64) for table in (sample.X, sample.new))
    unit = float(np.abs(X).max()) or 1.0
    return replace(sample, X=(X / unit) @ (X / unit).T, new=np.clip(new / unit, -1e6, 1e6) @ (X / unit).T)


def _as_strings(sample: Sample) -> Sample:
    """Replace each number by a letter for its sign and size; zeros are left out, so some strings are empty."""
    if not isinstance(sample.X, np.ndarray):
        return sample

    def word(row: np.ndarray) -> str:
        return "".join("abAB"[2 * int(value > 0) + int(abs(value) > 1)] for value in row.astype(float) if value != 0)

    return sample.both(lambda X: np.array([word(row) for row in X], dtype=object))


def _with_targets(sample: Sample, targets: str, rng: Random) -> Sample:
    if targets == "labels":
        return sample
    number = np.unique(sample.y, return_inverse=True)[1].astype(float)
    if targets == "numbers":
        return replace(sample, y=number + 0.1 * rng.normal(size=len(number)))
    if targets == "hard numbers":
        return replace(sample, y=HARD[rng.integers(len(HARD))](number + 0.1 * rng.normal(size=len(number)), rng))
    if targets == "vectors":
        return replace(sample, y=np.column_stack([number, rng.normal(size=(len(number), 2))]))
    dense = sample.X.toarray() if hasattr(sample.X, "toarray") else np.asarray(sample.X, dtype=np.float64)
    return replace(sample, y=logarithm(dense, dense))


HARD: tuple[Callable[[np.ndarray, Random], np.ndarray], ...] = (
    lambda y, rng: np.exp(3.0 * y),
    lambda y, rng: np.round(np.exp(y)),
    lambda y, rng: np.maximum(y - 0.5, 0.0),
    lambda y, rng: 1e100 * y,
    lambda y, rng: 1e-100 * y,
    lambda y, rng: 1e9 + y,
    lambda y, rng: 1e300 * y,
    lambda y, rng: np.full(len(y), 3.5),
    lambda y, rng: (y > y.mean()).astype(float),
    lambda y, rng: rng.standard_cauchy(len(y)),
    lambda y, rng: np.where(np.arange(len(y)) == 0, 1e12, y),
    lambda y, rng: np.where(rng.random(len(y)) < 0.2, np.nan, y),
    lambda y, rng: np.where(np.arange(len(y)) == len(y) - 1, np.inf, y),
)
