"""Random settings of all estimators, with a description of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_X_y
from torch import nn

from kernelwright import (
    ConditionalMeanEmbedding,
    EmbeddingClassifier,
    EmbeddingNetworkClassifier,
    EmbeddingRegressor,
    HyperKernelRidge,
    HyperKernelSVR,
    KreinSVC,
    LearnedKernelClassifier,
    hyper,
    hyperkernels,
    solvers,
)
from kernelwright.embedding import TrainingSet
from kernelwright.features import Network, Nystroem, Polynomial, RandomFourier
from kernelwright.inputs.arrays import as_matrix
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.labels import class_labels, one_hot
from kernelwright.inputs.weights import row_weights
from kernelwright.kernels import (
    Brownian,
    ConvexSum,
    Gaussian,
    KroneckerDelta,
    Laplace,
    Linear,
    Matern,
    RationalQuadratic,
    Spectrum,
)
from kernelwright.kernels import Polynomial as PolynomialKernel
from kernelwright.learning import LBFGS, METHODS, Adam, LearningMethod, train
from kernelwright.networks import MLP, HeadOptions, Training
from kernelwright.objectives import Hyperparameters, Objective, objective_named
from kernelwright.parameters import plain_values

__all__ = ["FAMILIES", "KERNELS", "LEARN", "Model", "any_regressor", "classifier", "learning", "solver"]

Random = np.random.Generator

KERNELS: dict[str, Callable[[int], Any]] = {  # by number of columns
    "default": lambda d: None,
    "Gaussian": lambda d: Gaussian(),
    "Gaussian ard": lambda d: Gaussian(ard=True),
    "Gaussian median": lambda d: Gaussian("median"),
    "Gaussian vector": lambda d: Gaussian(np.linspace(0.5, 2.0, d)),
    "Laplace": lambda d: Laplace("median"),
    "Matern 0.5": lambda d: Matern(nu=0.5, ard=True),
    "Matern 1.5": lambda d: Matern("median", nu=1.5),
    "Matern 2.5": lambda d: Matern(nu=2.5),
    "rational quadratic": lambda d: RationalQuadratic("median"),
    "linear": lambda d: Linear(),
    "polynomial 2": lambda d: PolynomialKernel(2),
    "polynomial 5": lambda d: PolynomialKernel(5, lengthscale=2.0),
    "Brownian": lambda d: Brownian(),
    "delta": lambda d: KroneckerDelta(),
    "sum": lambda d: Gaussian("median") + 0.5 * Linear(),
    "product": lambda d: Gaussian("median", ard=True) * PolynomialKernel(2),
    "convex sum": lambda d: ConvexSum([Gaussian("median"), Laplace("median"), Matern(nu=0.5)]),
    "nested": lambda d: (2.0 * Gaussian("median") + 3.0) * Laplace("median") + 1e-3,
    "precomputed": lambda d: "precomputed",
    "spectrum": lambda d: Spectrum(k=2),
}

FEATURES: dict[str, Callable[[int], Any]] = {
    "Fourier": lambda d: RandomFourier(20, lengthscale="median"),
    "Fourier Laplace ard": lambda d: RandomFourier(31, "laplace", ard=True),
    "Fourier Matern": lambda d: RandomFourier(200, "matern", "median"),
    "Nystroem": lambda d: Nystroem(n_landmarks=10),
    "Nystroem k-means": lambda d: Nystroem(Laplace("median"), 10, "kmeans"),
    "Nystroem leverage": lambda d: Nystroem(Gaussian(), 10, "leverage"),
    "Nystroem linear": lambda d: Nystroem(Linear(), 10),
    "monomials": lambda d: Polynomial(2 if d < 60 else 1),
    "network": lambda d: Network(_small_network(d)),
}

LEARN = [*METHODS, None]
RIDGES: list[Any] = ["auto", "auto", 1e-2, 1e-6, 1e-10, 1e-14, 1e-300, 1e3]


@dataclass(frozen=True)
class Model:
    """An estimator: its description, how to make it, and what it learns from."""

    family: str
    words: str
    make: Callable[[], Any]
    targets: str = "labels"  # or "numbers", "hard numbers", "vectors", "similarities"
    weighted: bool = True  # whether fit takes weights
    most_rows: int = 10_000  # more would take too long


def _described(family: str, cls: type, settings: dict[str, Any], parts: dict[str, Callable[[], Any]], **more: Any):
    """Describe a model with plain settings, and parts that are made anew for every fit."""
    said = ", ".join(f"{name}={_in_one_line(value)}" for name, value in settings.items() if not callable(value))
    named = ", ".join(parts)
    words = f"{cls.__name__}({said})" + (f" with {named}" if named else "")

    def make() -> Any:
        return cls(**settings, **{name.split(" ")[0]: part() for name, part in parts.items()})

    return Model(family, words, make, **more)


def _in_one_line(value: Any) -> str:
    return " ".join(repr(value).split())


def learning(
    word: str | None,
    max_iter: int,
    *,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    complexity_weight: float | str | None = None,
) -> LearningMethod | None:
    """Make a way to learn, with those of the settings that it has; steps are Adam's where a rate is given."""
    if word is None:
        return None
    optimizer = LBFGS(max_iter) if learning_rate is None else Adam(learning_rate, max_iter)
    asked = {
        "max_iter": max_iter,
        "optimizer": optimizer,
        "batch_size": batch_size,
        "complexity_weight": complexity_weight,
    }
    method = METHODS[word]()
    known = method.get_params(deep=False)
    return method.set_params(**{name: value for name, value in asked.items() if name in known and value is not None})


def solver(word: str, n: int | None = None, precision: str = "auto") -> solvers.Solver:
    """Make a solver, with those of the settings that it has."""
    made = solvers.SOLVERS[word]()
    asked = {"n": n, "precision": precision}
    return made.set_params(**{name: value for name, value in asked.items() if name in made.get_params(deep=False)})


def classifier(d: int, kernel: str = "default", **settings: Any) -> Model:
    """Make an ``EmbeddingClassifier`` with a kernel by its name."""
    parts = {} if kernel == "default" else {f"kernel {kernel}": lambda: KERNELS[kernel](d)}
    return _described("EmbeddingClassifier", EmbeddingClassifier, {"random_state": 0} | settings, parts)


def _any_classifier(rng: Random, d: int) -> Model:
    kernel = str(rng.choice(list(KERNELS)))
    learn, steps = LEARN[rng.integers(len(LEARN))], {"max_iter": int(rng.choice([3, 10, 30]))}
    settings: dict[str, Any] = {"ridge": RIDGES[rng.integers(len(RIDGES))]}
    if rng.random() < 0.3:
        settings["probability"] = str(rng.choice(["power", "softmax", "clip"]))
    if rng.random() < 0.3 and kernel not in ("default", "precomputed", "spectrum"):
        settings["scale"] = str(rng.choice(["standard", "unit"]))
    held: tuple[str, int | None] = ("auto", None)
    if rng.random() < 0.3 and kernel != "precomputed":
        word, n = str(rng.choice(["exact", "nystroem", "herding", "fourier"])), int(rng.integers(1, 30))
        has_fourier = kernel in ("Gaussian", "Laplace", "Matern 1.5")
        held = (word if word != "fourier" or has_fourier else "nystroem", n)
    if rng.random() < 0.2 and learn not in ("auto", "cross-validation", "median", None):
        steps["learning_rate"] = float(rng.choice([0.1, 10.0]))
        if rng.random() < 0.5:
            steps["batch_size"] = int(rng.integers(2, 20))
    if rng.random() < 0.2:
        steps["complexity_weight"] = [0.0, "4e", 1e6][rng.integers(3)]
    if rng.random() < 0.2:
        settings["class_weight"] = "balanced"
    precision = "single" if rng.random() < 0.3 else "auto"
    return classifier(d, kernel, learn=learning(learn, **steps), solver=solver(*held, precision), **settings)


def any_regressor(rng: Random, d: int) -> Model:
    """Draw an ``EmbeddingRegressor`` and the kind of its targets."""
    settings: dict[str, Any] = {
        "learn": learning(LEARN[rng.integers(len(LEARN))], int(rng.choice([3, 10]))),
        "distribution": str(rng.choice(["auto", "location-scale", "direct"])),
        "random_state": 0,
    }
    targets = str(rng.choice(["numbers", "hard numbers", "hard numbers", "vectors"]))
    if rng.random() < 0.3:
        name = str(rng.choice(list(FEATURES)))
        parts = {f"features {name}": lambda: FEATURES[name](d)}
        return _described("EmbeddingRegressor", EmbeddingRegressor, settings, parts, targets=targets)
    kernel = "default" if rng.random() < 0.6 else str(rng.choice([k for k in KERNELS if k != "precomputed"]))
    if kernel != "spectrum" and rng.random() < 0.4:
        settings["solver"] = solver(str(rng.choice(["exact", "nystroem", "herding", "tree"])), int(rng.integers(1, 30)))
    parts = {} if kernel == "default" else {f"kernel {kernel}": lambda: KERNELS[kernel](d)}
    return _described("EmbeddingRegressor", EmbeddingRegressor, settings, parts, targets=targets)


def _explicit(rng: Random, d: int) -> Model:
    name = str(rng.choice(list(FEATURES)))
    settings = {"learn": learning(LEARN[rng.integers(len(LEARN))], 5), "ridge": RIDGES[rng.integers(len(RIDGES))]}
    settings |= {"scale": [None, "standard"][rng.integers(2)], "random_state": 0}
    parts = {f"features {name}": lambda: FEATURES[name](d)}
    return _described("explicit features", EmbeddingClassifier, settings, parts)


def _network(rng: Random, d: int) -> Model:
    settings = {
        "module": MLP((8, 4), activation=str(rng.choice(["relu", "tanh", "silu"]))),
        "head": HeadOptions(ridge=["auto", 1e-8, 1.0][rng.integers(3)]),
        "training": Training(
            max_epochs=int(rng.choice([1, 5, 20])),
            learning_rate=float(rng.choice([0.01, 1.0])),
            precision=str(rng.choice(["auto", "single", "double"])),
        ),
        "probability": str(rng.choice(["auto", "power", "softmax", "clip"])),
        "scale": ["auto", None, "unit"][rng.integers(3)],
        "random_state": 0,
    }
    parts = {"kernel Gaussian": Gaussian} if rng.random() < 0.3 else {}
    return _described("EmbeddingNetworkClassifier", EmbeddingNetworkClassifier, settings, parts)


ANY_TARGET_LEARN = ["auto", "leave-one-out", "folds", "rademacher", "held-out", "empirical-risk", "median", None]


def _mean_embedding(rng: Random, d: int) -> Model:
    kernel = str(rng.choice([name for name in KERNELS if name != "precomputed"]))
    settings = {
        "learn": learning(ANY_TARGET_LEARN[rng.integers(len(ANY_TARGET_LEARN))], 5),
        "solver": ["auto", "exact", solvers.Landmarks(10)][rng.integers(3)],
        "ridge": RIDGES[rng.integers(len(RIDGES))],
        "prior": str(rng.choice(["zero", "marginal"])),
        "random_state": 0,
    }
    targets = str(rng.choice(["labels", "numbers", "vectors"]))
    parts = {} if kernel == "default" else {f"kernel {kernel}": lambda: KERNELS[kernel](d)}
    family = "ConditionalMeanEmbedding"
    return _described(family, ConditionalMeanEmbedding, settings, parts, targets=targets, weighted=False)


def _hyper(rng: Random, d: int) -> Model:
    kinds: dict[str, Callable[[], Any]] = {
        "Gaussian": hyperkernels.Gaussian,
        "Wishart": hyperkernels.Wishart,
        "Sum": hyperkernels.Sum,
    }
    name = str(rng.choice(["none", *kinds]))
    parts = {} if name == "none" else {f"hyperkernel {name}": kinds[name]}
    ridge = rng.random() < 0.7
    auto, midpoints, landmarks = hyper.AutoPairs(8), hyper.Midpoints(8), hyper.LandmarkPairs(8)
    solvers = (auto, midpoints, landmarks) if d > 50 else (auto, hyper.ExactPairs(), landmarks)
    settings: dict[str, Any] = {"solver": solvers[rng.integers(3)], "random_state": 0}
    if ridge:
        settings |= {"ridge": ["auto", 1e-8, 1.0][rng.integers(3)], "nonnegative": bool(rng.random() < 0.2)}
    else:
        settings |= {"C": ["auto", 1.0][rng.integers(2)]}
    if rng.random() < 0.2:
        settings |= {"learn": hyper.HeldOutMetric(3)}
    cls, targets = HyperKernelRidge if ridge else HyperKernelSVR, str(rng.choice(["labels", "similarities"]))
    more = {"targets": targets, "weighted": targets == "labels", "most_rows": 25}
    return _described("hyper-kernels", cls, settings, parts, **more)


def _krein(rng: Random, d: int) -> Model:
    kernel = str(rng.choice(["default", "Gaussian median", "linear", "polynomial 2", "Laplace"]))
    settings = {"C": ["auto", 1.0, 1e4][rng.integers(3)], "correction": str(rng.choice(["clip", "flip", "shift"]))}
    parts = {} if kernel == "default" else {f"kernel {kernel}": lambda: KERNELS[kernel](d)}
    if rng.random() < 0.5:
        return _described("KreinSVC", KreinSVC, settings, parts)
    return _described("KreinSVC", KreinSVC, settings, {"kernel logarithm": lambda: logarithm})


def _two_stages(rng: Random, d: int) -> Model:
    family = "LearnedKernelClassifier"
    more = {"weighted": False, "most_rows": 60}
    if rng.random() < 0.5:
        return _described(family, LearnedKernelClassifier, {}, {}, **more)
    parts = {"classifier EmbeddingClassifier": lambda: EmbeddingClassifier(random_state=0)}
    return _described(family, LearnedKernelClassifier, {}, parts, **more)


def logarithm(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return an indefinite similarity, in units in which no input is too large."""
    unit = max(float(np.abs(X).max(initial=0.0)), float(np.abs(Z).max(initial=0.0)), 1e-300)
    return -np.log1p(np.linalg.norm(X[:, None] / unit - Z / unit, axis=-1))


def _small_network(d: int) -> nn.Module:
    """Make a network with fixed weights."""
    module = nn.Sequential(nn.Linear(d, 6), nn.Tanh())
    for number, parameter in enumerate(module.parameters()):
        values = np.random.default_rng(number).normal(size=tuple(parameter.shape)) / np.sqrt(d)
        parameter.data.copy_(parameter.data.new_tensor(values))
    return module


class TrainingLoop:
    """Minimise one objective; the objective itself computes the values before and after."""

    def __init__(self, kernel: Any, ridge: float, objective: Objective, optimizer: Any) -> None:
        self.hyper, self.objective, self.optimizer = Hyperparameters(kernel, ridge), objective, optimizer

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingLoop:
        X, y = check_X_y(X, y, dtype=np.float64)
        weights = row_weights(y, sample_weight, None)
        kept = weights > 0
        classes, labels = class_labels(y[kept], self)
        rows = merge_duplicates(X[kept], labels, weights[kept], apart=weights[kept])
        weights, counts = torch.from_numpy(rows.weights), torch.from_numpy(rows.counts)
        data = TrainingSet.of(as_matrix(rows.X), one_hot(rows.y, len(classes)), weights=weights, counts=counts)
        self.hyper.kernel.prepare_(data.points, data.weights)
        self.start = self.objective(self.hyper, data).value
        train(self.objective, self.hyper, data, optimizer=self.optimizer)
        self.end = self.objective(self.hyper, data).value
        return self

    def predict(self, new: Any) -> np.ndarray:
        """Return the learned values."""
        return np.concatenate([[self.end], *(value.ravel() for value in plain_values(self.hyper).values())])


def _training_loop(rng: Random, d: int) -> Model:
    kernel = str(rng.choice([name for name in KERNELS if name not in ("default", "precomputed", "delta", "spectrum")]))
    settings = {
        "name": str(rng.choice(["rademacher", "held-out", "leave-one-out", "folds", "empirical-risk"])),
        "loss": str(rng.choice(["log", "brier", "calibrated"])),
        "complexity_weight": [0.0, "4e/n", "1/n"][rng.integers(3)],
    }
    ridge, steps = float(10.0 ** rng.uniform(-9, 1)), int(rng.choice([1, 5, 30]))
    adam = rng.random() < 0.3
    words = (
        f"objective {settings}, kernel {kernel}, ridge {ridge:.1e}, {steps} steps of {'Adam' if adam else 'L-BFGS-B'}"
    )

    def make() -> TrainingLoop:
        optimizer = Adam(1.0, steps) if adam else LBFGS(steps)
        return TrainingLoop(KERNELS[kernel](d), ridge, objective_named(**settings), optimizer)

    return Model("training loop", words, make)


# How often each family is drawn: most often the cheap and central one.
FAMILIES: dict[Callable[[Random, int], Model], float] = {
    _any_classifier: 0.5,
    _explicit: 0.12,
    _network: 0.08,
    _mean_embedding: 0.14,
    _hyper: 0.08,
    _krein: 0.05,
    _two_stages: 0.03,
    _training_loop: 0.1,
}
