"""Small objects of every class that a model file may hold, and files of them that every later version must load.

``python -m tests.persistence.samples`` writes ``tests/data/NAME.vVERSION.kw`` for each class and version of which there
is no file yet, and beside it, for what can be called, a JSON file of inputs and outputs. It never overwrites: a file
that no longer loads calls for an ``upgrade``. (Until the first release, delete files of changed classes and run it.)
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.sparse import csr_array
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression
from torch import nn

import kernelwright as kw
from kernelwright import distributions, features, hyper, hyperkernels, kernels, learning, solvers
from kernelwright.evaluation import Evaluation, NumberEvaluation, around_residuals
from kernelwright.inputs.coordinates import TableCoordinates
from kernelwright.inputs.frames.reader import FrameReader
from kernelwright.inputs.layout import CodedColumn, TableLayout
from kernelwright.inputs.scaling import TableViews
from kernelwright.persistence.classes import is_library_class, saved_class_of, saved_classes
from kernelwright.research import baselines
from kernelwright.tables import (
    KernelModel,
    Notation,
    TabularModel,
    TrainingNumbers,
    TrainingTable,
    as_table,
    describe_columns,
    held_out_error,
)
from kernelwright.uncertainty.coverage_groups import make_groups
from kernelwright.uncertainty.importance import rank_columns
from kernelwright.uncertainty.line import LogisticLine

DATA = Path(__file__).parents[1] / "data"

random = np.random.default_rng(0)
X = random.normal(size=(12, 2)).round(3)
NEW = X[:3] + 0.125
Y = np.arange(12) % 2
LABELS = np.array(["no", "yes"])[Y]
MATRIX = np.tanh(X @ X.T).round(3)
MANY = random.normal(size=(20, 2)).round(3)  # the fewest that can be refined
STRINGS = ["ACGT", "CGTA", "GGTA", "ACCT"] * 3
FRAME = pd.DataFrame({"size": X[:, 0], "price": [f"{x:.1f} €" for x in X[:, 1]], "colour": ["red", "blue", "red"] * 4})


@dataclass(frozen=True)
class Sample:
    """An object, and a method with its argument to call after loading; "" for plain records."""

    thing: Any
    call: str = ""
    inputs: Any = None


def samples() -> dict[str, Sample]:
    """Return a sample for the stable name of every saved class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny data
        explicit = [sample for make in (_estimators, _tables, _kernels, _options, _records) for sample in make()]
    found: dict[str, Sample] = {}
    for sample in explicit:
        found.setdefault(_name(sample.thing), sample)
    for sample in explicit:
        for piece in pieces(sample.thing):
            found.setdefault(_name(piece), Sample(piece))
    return found


def _name(thing: Any) -> str:
    declared = saved_class_of(type(thing))
    assert declared is not None, f"{type(thing)} is not saved"
    return declared.name


def _estimators() -> Iterator[Sample]:
    def fitted(
        model: Any, call: str = "predict_proba", target: Any = LABELS, points: Any = X, new: Any = NEW
    ) -> Sample:
        return Sample(model.fit(points, target), call, new)

    def embedding(*args: Any, **settings: Any) -> Sample:
        return fitted(kw.EmbeddingClassifier(*args, random_state=0, **settings))

    yield embedding(learn=learning.Auto(max_iter=1), solver=solvers.Auto())
    yield Sample(kw.EmbeddingClassifier(learn=None).fit(X, LABELS).compress(), "predict_proba", NEW)
    yield Sample(kw.EmbeddingClassifier(learn=None).fit(X, LABELS).partial_fit(NEW, LABELS[:3]), "predict_proba", NEW)
    yield embedding(kernels.Gaussian(1.0), learn=None, probability="clip")
    yield embedding(kernels.Gaussian(1.0), learn=None, probability="softmax")
    yield embedding(kernels.Gaussian(1.0), learn=None, probability=IsotonicRegression(out_of_bounds="clip"))
    trees = solvers.Tree(4, trees=2, landmarks=3)
    for solver in (solvers.Exact("single"), solvers.Landmarks(4), solvers.Fourier(4), solvers.Herding(4), trees):
        yield embedding(learn=learning.Given(), solver=solver)
    yield embedding(features=features.RandomFourier(4), learn=None)
    words = csr_array(np.eye(2)[Y] + [0.5, 0.0])
    yield fitted(kw.EmbeddingClassifier(learn=None), "", points=words)  # without a call: JSON has no sparse rows
    network = {"training": kw.networks.Training(max_epochs=2), "head": kw.networks.HeadOptions(), "random_state": 0}
    yield fitted(kw.EmbeddingNetworkClassifier(kw.networks.MLP((2,)), **network))
    yield fitted(kw.EmbeddingNetworkClassifier(kw.networks.MLP((2,)), kernel=kernels.Gaussian(), **network))
    yield fitted(kw.ConditionalMeanEmbedding(learn=None, random_state=0), "expectation", X[:, 0])
    for distribution in (distributions.Stacked(transform="identity"), distributions.LocationScale(transform="log")):
        numbers = kw.EmbeddingRegressor(learn=None, distribution=distribution, random_state=0)
        yield fitted(numbers, "predict", np.exp(X[:, 0]))
    for transform in ("root", "logit"):
        direct = distributions.Direct(transform=transform, low=0, high=100)
        yield fitted(kw.EmbeddingRegressor(learn=None, distribution=direct, random_state=0), "predict", np.exp(X[:, 0]))
    apart = learning.Given(holdout_share=0.25)
    few = kw.ConditionalMeanEmbedding(kernels.Gaussian(), learn=apart, solver=solvers.Landmarks(4), random_state=0)
    yield fitted(few, "expectation", X[:, 0])
    for method in ("leave-one-out", "split", "cross"):
        simple = kw.EmbeddingClassifier(kernels.Gaussian(1.0), learn=None, ridge=0.1)
        yield fitted(kw.PredictionSets(simple, method=method, n_folds=2, random_state=0), "predict_set")
    for method, by in (("cross", None), ("split", 0)):
        intervals = kw.PredictionIntervals(LinearRegression(), 0.4, by=by, method=method, n_folds=2, random_state=0)
        yield fitted(intervals, "interval", X[:, 0])
    yield fitted(kw.HyperKernelRidge(random_state=0), "predict", MATRIX)
    refined = kw.HyperKernelRidge(hyperkernels.Gaussian(), refine=True, random_state=0)
    yield fitted(refined, "predict", MANY @ MANY.T, MANY)
    wishart, metric = hyperkernels.Wishart(D=np.eye(2)), hyper.HeldOutMetric(2)
    for pairs in (hyper.LandmarkPairs(3), hyper.ExactPairs(), hyper.Partition(2, hyper.AutoPairs(3))):
        yield fitted(kw.HyperKernelRidge(wishart, solver=pairs, random_state=0), "predict")
    some = kw.HyperKernelSVR(hyperkernels.Gaussian(), solver=hyper.Midpoints(3), learn=metric, random_state=0)
    yield fitted(some, "predict", MATRIX)
    yield fitted(kw.LearnedKernelClassifier(kw.HyperKernelRidge(hyperkernels.Gaussian())), "predict")
    yield fitted(kw.KreinSVC(C=1.0), "decision_function")
    yield fitted(baselines.DataAdaptiveKernel(max_iter=2), "kernel_.__call__")
    yield fitted(baselines.AlignmentKernel(), "kernel_.__call__")
    yield fitted(baselines.RandomFeatureAlignment(4, random_state=0), "kernel_.__call__")
    yield fitted(baselines.BayesianMKL([kernels.Gaussian(1.0), kernels.Linear()], max_iter=2), "decision_function")
    few = baselines.BayesianMKL([kernels.Gaussian(1.0)], max_iter=2)
    yield fitted(baselines.DistributedBayesianMKL(few, n_parts=2, random_state=0), "decision_function")
    yield fitted(baselines.IndefiniteMKL([kernels.Gaussian(1.0), kernels.Linear()]), "decision_function")
    yield fitted(baselines.GridSearchSVC(cv=2), "predict", Y)
    printed = baselines.HyperKernelAsPrinted(n_landmarks=4, random_state=0)
    yield fitted(printed, "predict")
    yield fitted(TableViews(), "transform")
    layout = TableLayout((CodedColumn("town", "category", tuple(map(str, range(240)))), CodedColumn("day", "date")))
    codes = np.column_stack([np.arange(480) % 240, 18_000.0 + np.arange(480)])
    codes[:3, 1] = np.nan
    yield Sample(TableCoordinates(layout).fit(codes, codes[:, :1] % 3), "transform", codes[:5])


def _tables() -> Iterator[Sample]:
    data = TrainingTable.of(as_table(FRAME.assign(target=LABELS)), "target")
    p = np.where(data.labels[:, None] == [0, 1], 0.7, 0.3)
    found = Evaluation.of(p, data.labels, classes=data.classes, protocol="none", seconds=0.0)
    found.rivals["majority class"] = found.compare(np.full((len(p), 2), 0.5), 0.0)
    model = TabularModel.fit(data, evaluation=found)
    model.pipeline.set_params(classify__learn=None).fit(data.frame, data.labels)  # no history, which takes most room
    yield Sample(model, "predict_proba", FRAME[:3])
    notes = ["red wine and bread", "white wine and rice", "red roof and bread", "white roof and rice"] * 9
    written = pd.DataFrame({"size": np.arange(36) % 7 / 2, "note": [f"{note} {k}" for k, note in enumerate(notes)]})
    yield Sample(FrameReader.of(written), "codes", written[:3])
    yield Sample(found.reliability(2))
    yield Sample(rank_columns(["size", "price"], X, measure="log loss", base=0.5, n_repeats=2))
    yield Sample(found.hardest(1)[0])
    numbers = np.arange(4.0)
    measured = NumberEvaluation.of(
        around_residuals(numbers + 0.5, np.array([-1.0, 1.0]), numbers), numbers, protocol="none"
    )
    measured.rivals["training mean"] = measured.compare(around_residuals(np.full(4, 1.5), numbers - 1.5, numbers))
    yield Sample(measured)
    yield Sample(measured.hardest(1)[0])
    yield Sample(TrainingNumbers.of(numbers, Notation(",", "kg")), "rounded", np.array([0.123456789]))
    columns, objects = describe_columns(as_table(FRAME)), [str(number) for number in range(len(X))]
    tried = held_out_error(columns, FRAME, MATRIX, objects=objects)
    yield Sample(KernelModel.fit(columns, FRAME, MATRIX, objects=objects, evaluation=tried), "predict", FRAME[:3])


def _kernels() -> Iterator[Sample]:
    def alone(thing: Any, points: Any = NEW) -> Sample:
        return Sample(thing, "__call__", points)

    yield alone(2.0 * kernels.Gaussian([0.5, 2.0]) + kernels.Linear() * kernels.Laplace(2.0) + 1.0)
    for kernel in (
        kernels.Gaussian("median"),
        kernels.Laplace(0.5),
        kernels.Angular(0.5),
        kernels.Matern(2.0, nu=2.5),
        kernels.RationalQuadratic(1.5, mixture=2.0),
        kernels.Linear(),
        kernels.Polynomial(3, offset=0.5),
        kernels.Brownian([0.5, -1.0]),
        kernels.Constant(2.0),
        kernels.Linear() * kernels.Gaussian(1.0),
        3.0 * kernels.Linear(),
        kernels.ConvexSum([kernels.Gaussian(1.0), kernels.Linear()], [0.25, 0.75]),
        kernels.FeatureKernel(_prepared(features.Polynomial(2))),
        kw.HyperKernelRidge(hyperkernels.Gaussian(), random_state=0).fit(X, MATRIX).kernel_,
        baselines.DataAdaptiveKernel(max_iter=2).fit(X, Y).kernel_,
    ):
        yield alone(kernel)
    yield alone(kernels.Tabular(1.0), np.hstack([NEW, NEW]))
    yield alone(
        kernels.WithTrend(kernels.Tabular(1.0), 2.0).prepared(torch.from_numpy(np.hstack([X, X]))),
        np.hstack([NEW, NEW]),
    )
    yield alone(kernels.Spectrum(2), STRINGS[:4])
    yield alone(kernels.KroneckerDelta(), np.array([[0.0], [1.0], [0.0]]))
    yield Sample(kernels.Precomputed())
    for map_ in (
        features.RandomFourier(4, seed=1),
        features.Nystroem(kernels.Laplace(1.0), 3),
        features.Polynomial(2),
        features.Network(nn.Sequential(nn.Linear(2, 2), nn.Tanh())),
    ):
        yield alone(_prepared(map_))


def _prepared(map_: Any) -> Any:
    """Return a feature map as it is in a fitted model."""
    return kw.EmbeddingClassifier(features=map_, learn=None, ridge=0.1).fit(X, Y).features_


def _options() -> Iterator[Sample]:
    """Yield ways to learn, with settings that are not the defaults."""
    yield Sample(learning.Rademacher(0.1, optimizer=learning.LBFGS(5), kernel_share=0.5))
    yield Sample(learning.HeldOut("4e/n", optimizer=learning.Adam(0.01, patience=3), batch_size=100))
    yield Sample(learning.LeaveOneOut(0.0, loss="log", holdout_share=0.2))
    yield Sample(learning.Folds(3, loss="calibrated"))
    yield Sample(learning.RegularisedFolds(3, complexity_weight=0.5))
    yield Sample(learning.EmpiricalRisk(epsilon=0.1))
    yield Sample(learning.CrossValidation(3))
    yield Sample(learning.Median())


def _records() -> Iterator[Sample]:
    """Yield the records that methods of models return."""
    learn = learning.Rademacher(optimizer=learning.LBFGS(1))
    model = kw.EmbeddingClassifier(kernels.Gaussian(ard=True), learn=learn).fit(X, Y)
    yield Sample(model.relevance())
    yield Sample(model.risk_bound())
    yield Sample(make_groups("scale", None, np.arange(4.0)))
    slopes, intercepts = torch.tensor([[0.5, -0.5]]).double(), torch.tensor([0.25, -0.25]).double()
    yield Sample(LogisticLine(slopes, intercepts, torch.full((3, 2), 0.5).double().log(), 0.75))


def pieces(thing: Any) -> Iterator[Any]:
    """Yield every object of a saved class within an object, itself among them."""
    seen: dict[int, Any] = {}
    waiting = [thing]
    while waiting:
        piece = waiting.pop()
        if id(piece) in seen:
            continue
        seen[id(piece)] = piece
        if saved_class_of(type(piece)) is not None:
            yield piece
        waiting += _parts(piece)


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, (list, tuple)):
        return list(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return [getattr(thing, field.name) for field in fields(thing)]
    if isinstance(thing, nn.Module):
        return [*thing._modules.values(), *vars(thing).values()]
    known = is_library_class(type(thing)) or type(thing).__module__.startswith("sklearn.")
    return list(vars(thing).values()) if known and hasattr(thing, "__dict__") else []


# Files ------------------------------------------------------------------------------------------------------------


def path_of(name: str, version: int, folder: Path = DATA) -> Path:
    return folder / f"{name}.v{version}.kw"


def write_missing(folder: Path = DATA) -> list[Path]:
    """Write a file of every class and version of which there is none, and return their paths."""
    missing = [
        (declared.name, path)
        for declared in saved_classes()
        if not (path := path_of(declared.name, declared.version, folder)).exists()
    ]
    found = samples() if missing else {}
    folder.mkdir(exist_ok=True)
    for name, path in missing:
        assert name in found, f"samples() makes no object of the class with the stable name {name!r}"
        _write(path, found[name])
    return [path for _, path in missing]


def _write(path: Path, sample: Sample) -> None:
    kw.save(sample.thing, path)
    if sample.call:
        told = {"call": sample.call, "inputs": _to_json(sample.inputs), "expected": _to_json(answer(sample))}
        path.with_suffix(".json").write_text(json.dumps(told, ensure_ascii=False) + "\n")


def answer(sample: Sample) -> np.ndarray:
    """Return the outputs of the object for the inputs."""
    return np.asarray(attrgetter(sample.call)(sample.thing)(sample.inputs))


def _to_json(values: Any) -> Any:
    if isinstance(values, pd.DataFrame):
        return {name: values[name].tolist() for name in values}
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def question_of(path: Path) -> tuple[str, Any, Any] | None:
    """Return the method and inputs for the object in a file, and the expected outputs; None if there are none."""
    if not path.with_suffix(".json").exists():
        return None
    told = json.loads(path.with_suffix(".json").read_text())
    inputs = told["inputs"]
    return told["call"], pd.DataFrame(inputs) if isinstance(inputs, dict) else np.array(inputs), told["expected"]


if __name__ == "__main__":
    for written in write_missing():
        print(written)
