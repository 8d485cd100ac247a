"""Model files: the same model back, to the bit; and one sentence, never code or a crash, for any file that is not one.

The files in ``tests/fixtures/models`` are what each version of the format wrote. ``python -m tests.test_persistence``
makes those of the present version (delete the old ones of the same version only before it is released).
"""

from __future__ import annotations

import builtins
import copy
import importlib
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC
from torch import nn

import kernelwright as kw
from kernelwright import baselines, features, hyperkernels
from kernelwright.hyperkernels import PointPairs
from kernelwright.kernels import ConvexSum, Gaussian, Laplace, Linear, Matern, Spectrum
from kernelwright.persistence.archive import write_archive
from kernelwright.training import Step
from tests.cases import CASES, Cosine

FIXTURES = Path(__file__).parent / "fixtures" / "models"
MUTATIONS = int(os.environ.get("KERNELWRIGHT_MUTATIONS", "1500"))

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
NEW = X[::-1] + 0.1
Y = np.digitize(X[:, 0] * X[:, 1], [-0.2, 0.3])
LABELS = np.array(["low", "middle", "high"])[Y]
STRINGS = ["".join(rng.choice(list("ACGT"), 8)) for _ in range(30)]
TABLE = pd.DataFrame(
    {
        "size": X[:, 0],
        "gap": np.where(X[:, 1] > 1, np.nan, X[:, 1]),
        "colour": rng.choice(["red", "green", "blue"], 30),
        "mood": pd.Series(rng.choice(["good", "bad", None], 30), dtype=object),
    }
)
IMAGES = rng.normal(size=(30, 1, 6, 6))


class OwnNet(nn.Module):
    """A user's network, of whose class a file knows nothing; one layer is used twice."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.again, self.last = self.first, nn.Linear(4, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.again(torch.tanh(self.norm(self.first(x))))))


@dataclass(frozen=True)
class Model:
    """How a model is fitted, and what is compared after it was saved and loaded."""

    make: Any
    read: Any = lambda model: model.predict_proba(NEW)


def similarities() -> np.ndarray:
    target = np.tanh(X @ X.T)
    target[3, 5] = target[5, 3] = np.nan
    return target


def embedding(*args: Any, **settings: Any) -> Model:
    return Model(lambda: kw.EmbeddingClassifier(*args, random_state=0, **settings).fit(X, Y))


def network(*args: Any, **settings: Any) -> Model:
    return Model(lambda: kw.EmbeddingNetworkClassifier(*args, max_epochs=3, random_state=0, **settings).fit(X, LABELS))


def pairs(estimator: Any, target: Any = Y) -> Model:
    return Model(lambda: estimator.fit(X, target), lambda model: model.predict(NEW, X))


def with_kernel(estimator: Any) -> Model:
    return Model(lambda: estimator.fit(X, Y), lambda model: model.kernel_(NEW, X))


def around(estimator: Any, data: Any = X, labels: Any = Y) -> Model:
    return Model(lambda: estimator.fit(data, labels), lambda model: model.predict_proba(data))


def outputs(estimator: Any, y: Any = Y) -> Model:
    return Model(lambda: estimator.fit(X, y), lambda model: model.decision_function(NEW))


def table_pipeline() -> Any:
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), TABLE.columns[:2]),
            ("names", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"]),
            ("codes", codes, [3]),
        ]
    )
    return make_pipeline(columns, plain())


def plain() -> Any:
    return kw.EmbeddingClassifier(Gaussian(), learn="median", random_state=0)


MODELS = {
    "default": embedding(),
    "composite": embedding(2.0 * Matern(nu=2.5) + Linear() * Gaussian(ard=True) + 1.0, max_iter=5),
    "convex sum": embedding(ConvexSum([Gaussian(), Laplace()], [0.5, 0.5]), learn="rademacher", max_iter=5),
    "landmarks": embedding(solver="nystroem", n_landmarks=10),
    "fourier": embedding(solver="fourier", n_landmarks=10),
    "herding": embedding(solver="herding", n_landmarks=10),
    "random Fourier": embedding(features=features.RandomFourier(20)),
    "Nystroem": embedding(features=features.Nystroem(Laplace(), 10)),
    "polynomial": embedding(features=features.Polynomial(2)),
    "network features": embedding(features=features.Network(nn.Sequential(nn.Linear(4, 5), nn.Tanh())), max_iter=3),
    "labels, balanced": around(
        kw.EmbeddingClassifier(class_weight="balanced", probability="softmax"), TABLE[["size"]], LABELS
    ),
    "strings": Model(
        lambda: kw.EmbeddingClassifier(Spectrum(2), random_state=0).fit(STRINGS, LABELS),
        lambda model: model.predict_proba(STRINGS[::-1]),
    ),
    "precomputed": Model(
        lambda: kw.EmbeddingClassifier("precomputed", random_state=0).fit(X @ X.T, Y),
        lambda model: model.predict_proba(NEW @ X.T),
    ),
    "learned kernel in a classifier": Model(
        lambda: kw.EmbeddingClassifier(pairs(kw.HyperKernelRidge(random_state=0)).make().kernel_).fit(X, Y)
    ),
    "calibrator of scikit-learn": embedding(probability=IsotonicRegression(out_of_bounds="clip")),
    "prediction sets": Model(
        lambda: kw.PredictionSets(kw.EmbeddingClassifier(random_state=0)).fit(X, LABELS),
        lambda model: model.predict_set(NEW),
    ),
    "prediction sets of another classifier": Model(
        lambda: kw.PredictionSets(LogisticRegression(), method="split", random_state=0).fit(X, LABELS),
        lambda model: model.predict_set(NEW),
    ),
    "network": network(hidden=(5, 3)),
    "network with dropout and a kernel": network(hidden=(5, 3), dropout=0.2, kernel=Gaussian()),
    "layers": network(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sequential(nn.Tanh(), nn.Linear(6, 3)))),
    "convolutions": Model(
        lambda: kw.EmbeddingNetworkClassifier(
            nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()), max_epochs=2, random_state=0
        ).fit(IMAGES, Y),
        lambda model: model.predict_proba(IMAGES),
    ),
    "mean embedding": Model(
        lambda: kw.ConditionalMeanEmbedding(random_state=0).fit(X, X[:, 0] + X[:, 1]),
        lambda model: np.column_stack([model.expectation(NEW), model.quantile(NEW, [0.1, 0.9]), model.sample(NEW, 3)]),
    ),
    "mean embedding of labels": Model(
        lambda: kw.ConditionalMeanEmbedding(Gaussian(), prior="marginal").fit(X, LABELS),
        lambda model: model.expectation(NEW),
    ),
    "hyper ridge": pairs(kw.HyperKernelRidge(random_state=0)),
    "hyper ridge of a matrix": pairs(kw.HyperKernelRidge(random_state=0), similarities()),
    "hyper ridge, Wishart": pairs(kw.HyperKernelRidge(hyperkernels.Wishart(), n_landmarks=5, random_state=0)),
    "hyper SVR": pairs(kw.HyperKernelSVR(random_state=0)),
    "Krein SVC": outputs(kw.KreinSVC(C=2.0)),
    "learned kernel classifier": Model(
        lambda: kw.LearnedKernelClassifier(kw.HyperKernelRidge(random_state=0)).fit(X, LABELS),
        lambda model: model.decision_function(NEW),
    ),
    "alignment": with_kernel(kw.AlignmentKernel()),
    "Bayesian MKL": outputs(baselines.BayesianMKL(max_iter=5)),
    "random alignment": with_kernel(baselines.RandomFeatureAlignment(50, random_state=0)),
    "indefinite MKL": outputs(baselines.IndefiniteMKL()),
    "data-adaptive": with_kernel(baselines.DataAdaptiveKernel(max_iter=3)),
    "grid SVC": Model(lambda: baselines.GridSearchSVC().fit(X, Y), lambda model: model.predict(NEW)),
    "pipeline of a table": around(table_pipeline(), TABLE, LABELS),
    "selected columns": around(
        make_pipeline(
            make_column_transformer((SimpleImputer(), make_column_selector(dtype_include=np.number))),
            MinMaxScaler(),
            plain(),
        ),
        TABLE,
    ),
    "functions of columns": around(make_pipeline(FunctionTransformer(np.arctan), SelectKBest(f_classif, k=2), plain())),
    "calibrated": around(CalibratedClassifierCV(plain(), cv=2, method="isotonic")),
    "calibrated by sigmoids": around(CalibratedClassifierCV(plain(), cv=2)),
    "grid search": around(GridSearchCV(plain(), {"kernel": [Gaussian(), Laplace()]}, cv=2, scoring="neg_log_loss")),
    "voting": around(VotingClassifier([("ours", plain()), ("theirs", LogisticRegression())], voting="soft")),
    "stacking": around(StackingClassifier([("ours", plain())], LogisticRegression(), cv=2)),
    "SVC with a learned kernel": Model(
        lambda: SVC(kernel=kw.AlignmentKernel().fit(X, Y).kernel_).fit(X, Y), lambda model: model.decision_function(NEW)
    ),
    "isotonic": Model(
        lambda: IsotonicRegression(out_of_bounds="clip").fit(X[:, 0], Y), lambda model: model.predict(NEW[:, 0])
    ),
    "label encoder": Model(lambda: LabelEncoder().fit(LABELS), lambda model: model.transform(LABELS)),
    "not fitted": Model(lambda: kw.EmbeddingClassifier(Gaussian(2.0)), lambda model: model.kernel(NEW, X)),
}


@pytest.fixture(autouse=True)
def quiet():
    """Tiny data make some of the models warn while they are fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def round_trip(model: Any, folder: Path, **how: Any) -> Any:
    kw.save(model, folder / "model.kw")
    return kw.load(folder / "model.kw", **how)


def test_the_error_has_a_public_name_and_a_well_known_parent():
    assert issubclass(kw.ModelFileError, ValueError)


def settings_of(model: Any) -> str:
    """All settings as text, without addresses; an index of columns is a list after loading."""
    text = re.sub(r"Index\((\[.*?\]), dtype='\w+'\)", r"\1", repr(clone(model).get_params()))
    return re.sub(r"\s+", " ", re.sub("0x[0-9a-f]+", "", text))


# The same model ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_predicts_the_same_bits_and_can_do_all_that_a_model_can(name, tmp_path):
    case = MODELS[name]
    model = case.make()
    before = case.read(model)
    loaded = round_trip(model, tmp_path)
    np.testing.assert_array_equal(case.read(loaded), before)
    np.testing.assert_array_equal(case.read(pickle.loads(pickle.dumps(loaded))), before)
    np.testing.assert_array_equal(case.read(round_trip(loaded, tmp_path)), before)
    assert vars(loaded).keys() == vars(model).keys()
    if hasattr(model, "get_params"):
        assert settings_of(loaded) == settings_of(model)


@pytest.mark.parametrize("name", ["default", "network", "hyper ridge", "calibrated"])
def test_a_loaded_model_can_be_fitted_again(name, tmp_path):
    case = MODELS[name]
    model = case.make()
    loaded = clone(round_trip(model, tmp_path)).fit(X, Y)
    np.testing.assert_array_equal(case.read(loaded), case.read(clone(model).fit(X, Y)))


def test_explicit_features_go_on_with_batches_after_loading(tmp_path):
    model = MODELS["random Fourier"].make()
    loaded = round_trip(model, tmp_path)
    again = [each.partial_fit(NEW, Y[::-1]).predict_proba(X) for each in (model, loaded)]
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("case", [case for case in CASES if "cosine" not in case.id], ids=lambda case: case.id)
def test_kernels_are_saved_by_themselves(case, tmp_path):
    kernel, points = case.make(), case.random_points(6)
    loaded = round_trip(kernel, tmp_path)
    np.testing.assert_array_equal(loaded(points), kernel(points))
    assert repr(loaded) == repr(kernel)
    names = [(name, p.requires_grad) for name, p in kernel.named_parameters()]
    assert [(name, p.requires_grad) for name, p in loaded.named_parameters()] == names


def test_feature_maps_and_learned_kernels_are_saved_by_themselves(tmp_path):
    learned = pairs(kw.HyperKernelRidge(random_state=0), similarities()).make().kernel_
    np.testing.assert_array_equal(round_trip(learned, tmp_path)(NEW, X), learned(NEW, X))
    landmarks = features.Nystroem(Laplace(), 7).fit(X)
    np.testing.assert_array_equal(round_trip(landmarks, tmp_path)(NEW), landmarks(NEW))


class TestModulesOfOnesOwn:
    def test_the_architecture_comes_from_the_caller_and_the_numbers_from_the_file(self, tmp_path):
        model = network(OwnNet(), precision="double").make()
        given = OwnNet()
        before = copy.deepcopy(given.state_dict())
        loaded = round_trip(model, tmp_path, module=given)
        np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
        assert loaded.module_ is loaded._network.module
        assert loaded.module_.first is loaded.module_.again
        assert loaded.module_.last.weight.dtype == torch.float64
        assert loaded.module is not given
        assert all(torch.equal(before[name], number) for name, number in given.state_dict().items())
        np.testing.assert_array_equal(
            clone(loaded).fit(X, Y).predict_proba(NEW), clone(model).fit(X, Y).predict_proba(NEW)
        )

    def test_without_it_the_sentence_says_to_pass_it(self, tmp_path):
        kw.save(network(OwnNet()).make(), tmp_path / "own.kw")
        with pytest.raises(kw.ModelFileError, match=r"module of your own, 'OwnNet'.*module=OwnNet\(\.\.\.\)"):
            kw.load(tmp_path / "own.kw")
        with pytest.raises(kw.ModelFileError, match=r"fit no module that was passed.*first\.weight \(4, 4\)"):
            kw.load(tmp_path / "own.kw", module=OwnNet(5))
        with pytest.raises(TypeError, match="must be a torch module"):
            kw.load(tmp_path / "own.kw", module=[OwnNet])

    def test_a_known_container_of_an_own_layer_is_passed_as_a_whole(self, tmp_path):
        def build() -> nn.Module:
            return nn.Sequential(nn.Linear(4, 4), OwnNet())

        model = network(build()).make()
        loaded = round_trip(model, tmp_path, module=build())
        np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))

    def test_a_layer_with_a_hook_is_not_one_that_the_file_could_restore(self, tmp_path):
        layers = nn.Sequential(nn.Linear(4, 3))
        layers[0].register_forward_hook(lambda module, inputs, output: 2.0 * output)
        with pytest.raises(kw.ModelFileError, match="module="):
            round_trip(layers, tmp_path)
        loaded = kw.load(tmp_path / "model.kw", module=layers)
        assert torch.equal(loaded(torch.ones(1, 4)), layers(torch.ones(1, 4)))

    def test_a_kernel_of_ones_own_works_alike_beside_a_network(self, tmp_path):
        models = [embedding(Gaussian() * Cosine(2.0), max_iter=3).make(), network(OwnNet()).make()]
        loaded = round_trip(models, tmp_path, module=[OwnNet(), Cosine()])
        for model, again in zip(models, loaded, strict=True):
            np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))

    def test_a_network_on_another_device_is_loaded_to_the_cpu(self, tmp_path):
        model = network(hidden=(3,)).make()
        model._network.device = "cuda"
        assert round_trip(model, tmp_path)._network.device == "cpu"


# Objects ----------------------------------------------------------------------------------------------------------

ARRAY = np.arange(6.0).reshape(2, 3)
THINGS: dict[str, Any] = {
    "atoms": [None, True, False, 0, -5, 2**200, -(2**63), 0.1, -0.0, 5e-324, float("inf"), -float("inf"), "", "ä \0 𝄞"],
    "containers": [(1, (2, [3, {}])), {1, 2}, frozenset("ab"), {(1, "a"): None, 2.5: [], None: 1}, slice(1, None, 2)],
    "mappings": OrderedDict(b=1, a=2),
    "bytes": b"\0\xff",
    "numpy scalars": [np.float32(0.1), np.int64(-3), np.bool_(True), np.str_("ä"), np.datetime64("2020")],
    "types": [np.float64, float, np.number, np.log1p, torch.float32, np.dtype("<f4"), np.dtype(bool)],
    "arrays": [ARRAY, ARRAY.T, ARRAY[::-1], np.zeros((0, 3)), np.array(2.5), np.ones((2, 3, 4)).transpose(1, 0, 2)],
    "small types": [np.array([True, False]), np.array(["a", "äöü"]), np.array([b"x"]), np.arange(3, dtype=">i2")],
    "more types": [np.float16([1, 2]), np.array([1 + 2j]), np.array(["2020", "NaT"], "M8[Y]"), np.uint8([[255]])],
    "objects": [np.array(["a", None, 2.5, (1, 2)], dtype=object).reshape(2, 2), np.empty((0, 2), dtype=object)],
    "masked": np.ma.MaskedArray([1, 2, 3], [False, True, False]),
    "record": Step(*range(len(Step.__dataclass_fields__))),
    "named tuple": PointPairs(torch.zeros(1, 2), torch.ones(1, 2)),
}  # fmt: skip


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray) and a.dtype == object:
        assert a.shape == b.shape
        assert_same(list(a.ravel()), list(b.ravel()))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.flags.f_contiguous == b.flags.f_contiguous or not (a.flags.c_contiguous or a.flags.f_contiguous)
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
        assert (a.dtype, a.requires_grad) == (b.dtype, b.requires_grad)
    elif isinstance(a, dict):
        assert_same(list(a.items()), list(b.items()))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        assert a == b or a != a
        assert repr(a) == repr(b)  # negative zero


@pytest.mark.parametrize("name", THINGS)
def test_everything_that_a_model_is_made_of_comes_back_as_it_was(name, tmp_path):
    assert_same(round_trip(THINGS[name], tmp_path), THINGS[name])


def test_a_few_kinds_of_lists_become_plain_ones(tmp_path):
    assert_same(round_trip([range(2), torch.Size([3]), pd.Index(["a", "b"])], tmp_path), [[0, 1], (3,), ["a", "b"]])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"])
def test_tensors_keep_their_type_layout_and_whether_they_are_learned(dtype, tmp_path):
    tensor = torch.arange(24).reshape(2, 3, 4).to(getattr(torch, dtype)).permute(2, 0, 1)
    loaded = round_trip([tensor, tensor[:0], tensor[0, 0, 0]], tmp_path)
    assert_same(loaded, [tensor, tensor[:0], tensor[0, 0, 0]])
    assert loaded[0].stride() == tensor.stride()
    learned, fixed = round_trip([nn.Parameter(torch.ones(2)), torch.ones(2)], tmp_path)
    assert (type(learned), learned.requires_grad) == (nn.Parameter, True)
    assert not fixed.requires_grad


def test_what_was_one_object_is_one_object_again_and_is_stored_once(tmp_path):
    array, tensor, items = np.ones(10_000), nn.Parameter(torch.ones(10_000)), [1]
    loaded = round_trip([array, array, tensor, (tensor, items), items], tmp_path)
    assert loaded[0] is loaded[1]
    assert loaded[2] is loaded[3][0]
    assert loaded[3][1] is loaded[4]
    assert (tmp_path / "model.kw").stat().st_size < 170_000


@pytest.mark.parametrize(
    "make", [lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)], ids=["RandomState", "Generator"]
)
def test_a_random_state_goes_on_where_it_was(make, tmp_path):
    random = make()
    random.normal(size=3)
    model = kw.EmbeddingClassifier(random_state=random)
    loaded = round_trip([model, random], tmp_path)
    assert loaded[0].random_state is loaded[1]
    np.testing.assert_array_equal(loaded[1].normal(size=700), random.normal(size=700))


def test_generators_of_other_kinds_go_on_too(tmp_path):
    for kind in (np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM):
        random = np.random.Generator(kind(1))
        random.integers(10, size=3, dtype=np.int32)
        np.testing.assert_array_equal(round_trip(random, tmp_path).normal(size=9), random.normal(size=9))
    random = torch.Generator().manual_seed(5)
    torch.rand(3, generator=random)
    loaded = round_trip(random, tmp_path)
    assert torch.equal(torch.rand(700, generator=loaded), torch.rand(700, generator=random))


def test_settings_of_the_running_program_are_left_out_with_a_warning(tmp_path):
    model = kw.EmbeddingNetworkClassifier(callback=print, checkpoint=str(tmp_path / "run"))
    with pytest.warns(UserWarning, match="callback is not part") as found:
        loaded = round_trip(make_pipeline(model, memory="cache"), tmp_path)
    assert {str(warning.message).partition(" is not")[0].rpartition(".")[2] for warning in found} == {
        "callback",
        "checkpoint",
        "memory",
    }
    assert all(warning.filename == __file__ for warning in found)
    assert loaded.memory is loaded[0].callback is loaded[0].checkpoint is None


class Strange:
    pass


cycle: list[Any] = []
cycle.append(cycle)
deep: list[Any] = []
for _ in range(150):
    deep = [deep]


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (FunctionTransformer(lambda x: x), r"FunctionTransformer\.func cannot be saved: it is a function .*<lambda>"),
        ({"a": [Strange()]}, r"dict\['a'\]\[0\] cannot be saved: it is a .*Strange"),
        (Strange, "cannot be saved: it is a type Strange"),
        (np.zeros(2, dtype=[("a", "f8")]), "dtype"),
        (np.longdouble([1.0]), "dtype"),
        (torch.ones(2).to_sparse(), "tensor"),
        (torch.ones(2, dtype=torch.complex64), "tensor"),
        (cycle, "contains itself"),
        (deep, "more than 100 objects lie within each other"),
        ("\ud800", "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        (sys, "cannot be saved: it is a module"),
    ],
)
def test_what_cannot_be_saved_is_named_and_no_file_is_written(thing, sentence, tmp_path):
    with pytest.raises((TypeError, ValueError), match=sentence):
        kw.save(thing, tmp_path / "model.kw")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.kw"
    kw.save(Gaussian(2.0), path)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "_write_end_record", full)
    with pytest.raises(OSError, match="No space left"):
        kw.save(Gaussian(3.0), path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert float(kw.load(path).lengthscale) == pytest.approx(2.0)
    with pytest.raises(FileNotFoundError):
        kw.save(Gaussian(), tmp_path / "no such folder" / "model.kw")


def test_an_interrupt_while_saving_is_that_interrupt_and_leaves_nothing(tmp_path, monkeypatch):
    """Closing an archive whose member was just begun would raise an error of its own and hide the interrupt."""
    begin = zipfile.ZipFile.open
    begun = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        begun.append(begin(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kw.save(Gaussian(1.0), tmp_path / "kernel.kw")
    assert len(begun) == 1
    assert not list(tmp_path.iterdir())


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = MODELS["default"].make()
    for name in ("a", "b"):
        kw.save(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_setting_that_is_newer_than_the_file_has_its_default(tmp_path):
    model = MODELS["default"].make()
    del model.__dict__["tol"]
    assert round_trip(model, tmp_path).get_params()["tol"] == kw.EmbeddingClassifier().tol


# Files of each version --------------------------------------------------------------------------------------------

WORDS = rng.choice(["a", "b", "c"], (30, 2))
FIXTURE_MODELS: dict[str, tuple[Any, np.ndarray, str]] = {
    "classifier": (lambda: kw.EmbeddingClassifier(random_state=0).fit(X, LABELS), NEW, "predict_proba"),
    "features": (MODELS["Nystroem"].make, NEW, "predict_proba"),
    "network": (MODELS["network with dropout and a kernel"].make, NEW, "predict_proba"),
    "mean_embedding": (MODELS["mean embedding"].make, NEW, "expectation"),
    "learned_kernel": (MODELS["hyper ridge of a matrix"].make, NEW, "predict"),
    "krein": (MODELS["Krein SVC"].make, NEW, "decision_function"),
    "pipeline": (
        lambda: make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler(), plain()).fit(WORDS, LABELS),
        WORDS,
        "predict_proba",
    ),
}


def make_fixtures(version: int) -> None:
    """Write the files of the present version, with inputs and what the models predict for them."""
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for name, (make, inputs, method) in FIXTURE_MODELS.items():
        model = make()
        kw.save(model, FIXTURES / f"v{version}_{name}.kw")
        expected = getattr(model, method)(inputs)
        np.savez(FIXTURES / f"v{version}_{name}.npz", inputs=inputs, expected=expected, method=method)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.kw")), ids=lambda path: path.stem)
def test_files_of_every_version_keep_loading(path):
    with np.load(path.with_suffix(".npz")) as known:
        model = kw.load(path)
        found = getattr(model, str(known["method"]))(known["inputs"])
        np.testing.assert_allclose(found, known["expected"], rtol=1e-12, atol=1e-12)


def test_there_are_files_of_the_first_version():
    assert {path.stem for path in FIXTURES.glob("v1_*.kw")} == {f"v1_{name}" for name in FIXTURE_MODELS}


# Files that are none ----------------------------------------------------------------------------------------------


def refused(path: Path, sentence: str, **how: Any) -> None:
    with pytest.raises(kw.ModelFileError, match=sentence) as found:
        kw.load(path, **how)
    words = str(found.value)
    assert words.startswith(f"Cannot load {path}: ")
    assert words.endswith(".")
    assert "\n" not in words


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty; expected a file written by kernelwright.save"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "it is no model file; expected"),
        (b"PK\x03\x04" + bytes(100), "cut off or damaged .*; copy it again"),
        (pickle.dumps(Gaussian(2.0)), "it is no model file"),
    ],
)
def test_a_file_of_something_else_is_refused_in_a_sentence(content, sentence, tmp_path):
    (tmp_path / "model.kw").write_bytes(content)
    refused(tmp_path / "model.kw", sentence)


def test_a_folder_is_refused_and_a_missing_file_is_missing(tmp_path):
    refused(tmp_path, "it is a folder")
    if hasattr(os, "mkfifo"):  # not on Windows
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "not a regular file")
    with pytest.raises(FileNotFoundError):
        kw.load(tmp_path / "model.kw")


def parts_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path: Path, parts: Any, compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)


@pytest.fixture
def model_file(tmp_path) -> Path:
    kw.save(MODELS["Krein SVC"].make(), tmp_path / "model.kw")
    return tmp_path / "model.kw"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, r"made by a newer kernelwright \(format 2\), and this one reads formats up to 1; upgrade"),
        ({"version": "1"}, "manifest is not that of a model"),
        ({"version": True}, "manifest is not that of a model"),
        ({"format": "other"}, "manifest is not that of a model"),
        ({"byteorder": "big"}, "byte order 'big'"),
        ({"kernelwright": "9"}, "the digest differs"),
        ({"digest": None}, "the digest differs"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(change, sentence, model_file):
    parts = parts_of(model_file)
    parts["manifest.json"] = json.dumps(json.loads(parts["manifest.json"]) | change).encode()
    write_parts(model_file, parts)
    refused(model_file, sentence)


def test_a_newer_format_is_recognised_whatever_else_is_in_it(tmp_path):
    manifest = json.dumps({"format": "kernelwright model", "version": 7})
    write_parts(tmp_path / "model.kw", {"manifest.json": manifest, "tensors.bin": b""})
    refused(tmp_path / "model.kw", "format 7")


def test_another_scikit_learn_is_warned_about_once_and_loaded(model_file):
    model = make_pipeline(StandardScaler(), StandardScaler()).fit(X)
    kw.save(model, model_file)
    parts = parts_of(model_file)
    document = json.loads(parts["document.json"])
    arrays = [memoryview(parts[f"arrays/{number}"]) for number in range(len(parts) - 2)]
    with pytest.MonkeyPatch.context() as patch, open(model_file, "wb") as file:
        patch.setattr("sklearn.__version__", "1.0")
        write_archive(file, document, arrays)
    with pytest.warns(UserWarning, match="saved with scikit-learn 1.0") as found:
        loaded = kw.load(model_file)
    assert len(found) == 1
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_tricks_with_the_archive_are_refused(model_file):
    parts = parts_of(model_file)
    for name in ("../../escaped", "/tmp/escaped", "arrays/../x", "arrays/007", "C:\\escaped", "document.json/"):
        write_parts(model_file, parts | {name: b"x"})
        refused(model_file, "a part named")
    write_parts(model_file, [*parts.items(), ("document.json", b"{}")])
    refused(model_file, "two of its parts have the same name")
    write_parts(model_file, {name: part for name, part in parts.items() if name != "manifest.json"})
    refused(model_file, "zip archive of something else")
    write_parts(model_file, {name: part for name, part in parts.items() if name != "document.json"})
    refused(model_file, "")
    write_parts(model_file, parts | {"arrays/0": bytes(10**7)}, zipfile.ZIP_DEFLATED)
    refused(model_file, "compressed or encrypted")
    assert not list(model_file.parent.glob("*escaped*"))


def test_parts_that_overlap_or_claim_too_much_are_refused(model_file):
    content = bytearray(model_file.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the first entry of the directory: both sizes
    content[entry + 20 : entry + 28] = (2**31).to_bytes(4, "little") * 2
    model_file.write_bytes(content)
    refused(model_file, "claim to be larger than the file")


def test_json_that_is_too_deep_too_long_or_none_is_refused(model_file):
    parts = parts_of(model_file)
    for document in (b"[" * 10**6, b'{"table": ' + b"[" * 10**5, b"\xff\xfe", b"[]", b"NaN", b'{"root": NaN}', b""):
        write_parts(model_file, parts | {"document.json": document})
        refused(model_file, "")
    write_parts(model_file, parts | {"document.json": b" " * (2**26 + 1)})
    refused(model_file, "at most 67108864 are allowed")


FILLINGS = {
    "lists": b"[]",
    "objects": b"{}",
    "numbers": b"1",
    "entries": b'{"kind":"list","items":[]}',
    "models": b'{"kind":"object","class":"sklearn.linear_model.Ridge","state":{}}',
}


@pytest.mark.parametrize("filling", FILLINGS.values(), ids=FILLINGS.keys())
def test_a_document_that_would_take_long_to_read_is_refused_unread(model_file, monkeypatch, filling):
    times = (2**26 - 100) // (len(filling) + 1)
    document = b'{"root":0,"table":[' + b",".join([filling] * times) + b"]}"
    write_parts(model_file, parts_of(model_file) | {"document.json": document})
    parse = json.loads

    def small_only(content, **choices):
        assert len(content) < 10_000
        return parse(content, **choices)

    monkeypatch.setattr(json, "loads", small_only)
    refused(model_file, "where at most .* are allowed")


def test_many_things_that_take_long_to_make_are_refused(model_file):
    entry = {"kind": "module", "class": "torch.nn.ReLU", "training": True, "transient": []}
    empty = {name: {} for name in ("state", "parameters", "buffers", "modules")}
    forge(model_file, [entry | empty] * 20_001)
    refused(model_file, "more than 20000 networks, kernels and random states")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"too many single objects: their description takes .* objects, where at most"):
        kw.save([[] for _ in range(2**19)], tmp_path / "m.kw")
    with pytest.raises(ValueError, match=r"too many single objects: their description takes .* values, where at most"):
        kw.save([0] * 2**23, tmp_path / "m.kw")
    assert not list(tmp_path.iterdir())


def forge(path: Path, table: list[Any], *arrays: bytes, root: Any = None) -> None:
    """A file with a right digest, whatever it says."""
    document = {"root": {"ref": len(table) - 1} if root is None else root, "table": table}
    with open(path, "wb") as file:
        write_archive(file, document, [memoryview(array) for array in arrays])


def array_entry(**change: Any) -> dict[str, Any]:
    return {"kind": "array", "dtype": "<f8", "shape": [2], "order": [0], "bytes": 0} | change


def tensor_entry(**change: Any) -> dict[str, Any]:
    return {"kind": "tensor", "dtype": "float64", "shape": [2], "order": [0], "bytes": 0, "learned": False} | change


def object_entry(name: str, **state: Any) -> dict[str, Any]:
    return {"kind": "object", "class": name, "state": state}


def module_entry(name: str, **change: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"state": {}, "parameters": {}, "buffers": {}, "modules": {}, "transient": []}
    return {"kind": "module", "class": name, "training": True, **empty} | change


def doubled(levels: int) -> list[Any]:
    """Tuples of two times the one before: few entries, but 2^levels parts."""
    return [{"kind": "tuple", "items": [1, 1]}] + [
        {"kind": "tuple", "items": [{"ref": number}] * 2} for number in range(levels)
    ]


EMBEDDING = "kernelwright.estimators.classifier.EmbeddingClassifier"
GAUSSIAN = "kernelwright.kernels.vector.Gaussian"
TWO = np.ones(2).tobytes()
MT = {"kind": "dict", "items": [["key", {"ref": 0}], ["pos", 10**6]]}
MT_STATE = {
    "kind": "dict",
    "items": [["bit_generator", "MT19937"], ["state", {"ref": 1}], ["has_gauss", 0], ["gauss", 0.0]],
}

FORGERIES: dict[str, tuple[list[Any], str, tuple[bytes, ...]]] = {
    "unknown class": ([object_entry("os.system")], "class 'os.system', which", ()),
    "unknown class of this package": ([object_entry("kernelwright.cli.main")], "cannot restore", ()),
    "private class of scikit-learn": ([object_entry("sklearn.tree._tree.Tree")], "cannot restore", ()),
    "an error": ([object_entry("kernelwright.errors.ModelFileError")], "cannot restore", ()),
    "a function": ([{"kind": "thing", "name": "builtins.eval"}], "names 'builtins.eval', which no model needs", ()),
    "an import": ([{"kind": "thing", "name": "os.system"}], "no model needs", ()),
    "unknown kind": ([{"kind": "pickle"}], "unknown kind 'pickle'", ()),
    "no kind": ([{}], "lacks 'kind'", ()),
    "no entry": ([3], "lacks 'kind'", ()),
    "itself": ([{"kind": "list", "items": [{"ref": 0}]}], "no earlier object", ()),
    "a later one": ([{"kind": "list", "items": [{"ref": 1}]}, {"kind": "list", "items": []}], "no earlier", ()),
    "before the first": ([{"kind": "list", "items": [{"ref": -1}]}], "no earlier object", ()),
    "no number": ([{"kind": "list", "items": []}, {"kind": "list", "items": [{"ref": False}]}], "no earlier", ()),
    "a list in place of a value": ([{"kind": "list", "items": [[1]]}], "neither an atom nor a reference", ()),
    "two references": ([{"kind": "list", "items": [{"ref": 0, "int": "1"}]}], "neither an atom", ()),
    "strange float": ([{"kind": "list", "items": [{"float": "1e3"}]}], "", ()),
    "unhashable float": ([{"kind": "list", "items": [{"float": []}]}], "", ()),
    "strange integer": ([{"kind": "list", "items": [{"int": "zz"}]}], "damaged", ()),
    "endless integer": ([{"kind": "list", "items": [{"int": "f" * 20_000}]}], "", ()),
    "unhashable key": ([{"kind": "list", "items": []}, {"kind": "dict", "items": [[{"ref": 0}, 1]]}], "damaged", ()),
    "half a pair": ([{"kind": "dict", "items": [[1]]}], "damaged", ()),
    "unhashable item": ([{"kind": "list", "items": []}, {"kind": "set", "items": [{"ref": 0}]}], "damaged", ()),
    "a key of 2^60 parts": ([*doubled(60), {"kind": "dict", "items": [[{"ref": 60}, 1]]}], "nested too deeply", ()),
    "a key of 2^15 parts": ([*doubled(15), {"kind": "dict", "items": [[{"ref": 15}, 1]]}], "key .* is too large", ()),
    "too deep": (
        [{"kind": "tuple", "items": []}] + [{"kind": "tuple", "items": [{"ref": n}]} for n in range(10_000)],
        "nested too deeply",
        (),
    ),
    "no base64": ([{"kind": "bytes", "text": "%%%"}], "damaged", ()),
    "slice of four": ([{"kind": "slice", "items": [1, 2, 3, 4]}], "damaged", ()),
    "object dtype": ([array_entry(dtype="|O", shape=[2])], "dtype '|O', which no model has", (TWO,)),
    "a pickle as numbers": ([array_entry(dtype="O")], "no model has", (pickle.dumps(print),)),
    "record dtype": ([array_entry(dtype="[('a', '<f8')]")], "no model has", (TWO,)),
    "pointer dtype": ([array_entry(dtype="|V8")], "no model has", (TWO,)),
    "empty strings": ([array_entry(dtype="<U0", shape=[10**12])], "no model has", (b"",)),
    "a shape that lies": ([array_entry(shape=[3])], "shape of an array does not fit its size", (TWO,)),
    "a shape beyond memory": ([array_entry(shape=[2**40, 2**40], order=[0, 1])], "does not fit its size", (TWO,)),
    "a shape beyond numbers": ([array_entry(shape=[10**400])], "does not fit its size", (TWO,)),
    "an empty shape beyond numbers": ([array_entry(shape=[0, 10**30], order=[0, 1])], "damaged", (b"",)),
    "an empty tensor beyond numbers": ([tensor_entry(shape=[0, 10**30], order=[0, 1])], "damaged", (b"",)),
    "negative shape": ([array_entry(shape=[-2])], "impossible shape", (TWO,)),
    "two negative lengths": ([array_entry(shape=[-1, -2], order=[0, 1])], "impossible shape", (TWO,)),
    "true as a length": ([array_entry(shape=[True, 2], order=[0, 1])], "impossible shape", (TWO,)),
    "a thousand axes": ([array_entry(shape=[1] * 999 + [2], order=[*range(1000)])], "impossible shape", (TWO,)),
    "an axis twice": ([array_entry(shape=[1, 2], order=[1, 1])], "impossible order", (TWO,)),
    "axes missing": ([array_entry(shape=[1, 2], order=[])], "impossible order", (TWO,)),
    "unordered axes": ([array_entry(order=["0"])], "impossible order", (TWO,)),
    "no such array": ([array_entry(bytes=1)], "out of turn", (TWO,)),
    "an array twice": ([array_entry(), array_entry()], "out of turn", (TWO,)),
    "an array by another name": ([array_entry(bytes="../0")], "out of turn", (TWO,)),
    "an array that is not used": ([{"kind": "list", "items": []}], "does not speak of", (TWO,)),
    "neither true nor false": ([array_entry(dtype="|b1")], "neither true nor false", (b"\x01\x07",)),
    "tensor neither true nor false": ([tensor_entry(dtype="bool")], "neither true nor false", (b"\x01\x07",)),
    "no such characters": ([array_entry(dtype="<U1", shape=[2])], "characters that do not exist", (b"\xff" * 8,)),
    "no such character": ([{"kind": "scalar", "dtype": "<U1", "bytes": "ffffffff"}], "do not exist", ()),
    "scalar of another size": ([{"kind": "scalar", "dtype": "<f8", "bytes": "00"}], "wrong size", ()),
    "objects that are too few": ([{"kind": "objects", "shape": [2**40], "items": []}], "does not fit its size", ()),
    "objects of no shape": ([{"kind": "objects", "shape": ["a"], "items": []}], "does not fit its size", ()),
    "a mask of nothing": ([{"kind": "masked", "items": []}], "damaged", ()),
    "a mask of a number": ([{"kind": "masked", "items": [1, True]}], "has no array", ()),
    "tensor of no type": ([tensor_entry(dtype="quint8")], "dtype that no model has", (TWO,)),
    "learned integers": ([tensor_entry(dtype="int64", learned=True)], "damaged", (TWO,)),
    "random state beyond itself": (
        [array_entry(dtype="<u4", shape=[624]), MT, MT_STATE, {"kind": "random state", "state": {"ref": 2}}],
        "points beyond itself",
        (bytes(4 * 624),),
    ),
    "generator of nothing": ([{"kind": "generator", "state": 3}], "lacks 'bit_generator'", ()),
    "torch generator of nothing": ([{"kind": "torch generator", "state": "x"}], "damaged", ()),
    "torch generator of noise": (
        [tensor_entry(dtype="uint8", shape=[16]), {"kind": "torch generator", "state": {"ref": 0}}],
        "damaged",
        (TWO,),
    ),
    "method replaced": ([object_entry(EMBEDDING, predict=1)], "'predict' in place of a method", ()),
    "class replaced": ([object_entry(EMBEDDING, __class__=1)], "in place of a method", ()),
    "state is no mapping": ([{"kind": "object", "class": EMBEDDING, "state": [1]}], "lacks 'state'", ()),
    "a module as a plain object": ([object_entry(GAUSSIAN)], "described as what it is not", ()),
    "an estimator as a module": ([module_entry(EMBEDDING)], "cannot restore", ()),
    "a record with too little": ([object_entry("kernelwright.training.Step")], "lacks 'objective'", ()),
    "a record with too much": ([object_entry("kernelwright.calibration.ClipMap", more=1)], "'more' that it", ()),
    "a named tuple too short": (
        [{"kind": "record", "class": "kernelwright.hyperkernels.PointPairs", "items": [1]}],
        "wrong number of parts",
        (),
    ),
    "hooks": ([module_entry(GAUSSIAN, state={"_forward_hooks": 1})], "state of torch's own", ()),
    "parameters that are none": ([module_entry(GAUSSIAN, parameters={"a": 1})], "are something else", ()),
    "modules that are none": ([module_entry("torch.nn.Sequential", modules={"0": "x"})], "are something else", ()),
    "a module in place of a method": (
        [module_entry("torch.nn.ReLU"), module_entry("torch.nn.Sequential", modules={"forward": {"ref": 0}})],
        "in place of a method",
        (),
    ),
    "training perhaps": ([module_entry(GAUSSIAN, training=1)], "lacks 'training'", ()),
    "isotonic regression without sense": (
        [object_entry("sklearn.isotonic.IsotonicRegression", X_thresholds_="a", y_thresholds_=3)],
        "damaged",
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_with_a_right_digest_is_refused(name, tmp_path):
    table, sentence, arrays = FORGERIES[name]
    forge(tmp_path / "model.kw", table, *arrays)
    refused(tmp_path / "model.kw", re.escape(sentence).replace(r"\.\*", ".*"))


def test_forged_numbers_of_a_module_of_ones_own_are_refused(tmp_path):
    entry = {"kind": "foreign module", "class": "OwnNet", "training": True, "learned": [], "numbers": {"a": 1}}
    forge(tmp_path / "model.kw", [entry])
    refused(tmp_path / "model.kw", "are something else", module=OwnNet())


@pytest.mark.parametrize("root", [{"ref": 5}, [1], {}])
def test_a_root_that_leads_nowhere_is_refused(root, tmp_path):
    forge(tmp_path / "model.kw", [], root=root)
    refused(tmp_path / "model.kw", "")


def test_paths_and_caches_in_a_forged_file_are_ignored(tmp_path):
    forge(tmp_path / "model.kw", [object_entry("sklearn.pipeline.Pipeline", steps=None, memory="/tmp/cache")])
    assert kw.load(tmp_path / "model.kw").memory is None


# No code ----------------------------------------------------------------------------------------------------------


def test_loading_neither_unpickles_nor_evaluates_nor_imports(tmp_path, monkeypatch):
    model = MODELS["pipeline of a table"].make()
    expected = model.predict_proba(TABLE)
    round_trip(model, tmp_path)  # the list of classes is made once

    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("loading ran code")

    before = set(sys.modules)
    forbidden = [(builtins, "eval"), (builtins, "exec"), (builtins, "compile"), (importlib, "import_module")]
    forbidden += [(pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load")]
    with monkeypatch.context() as patch:
        for module, name in forbidden:
            patch.setattr(module, name, never)
        loaded = kw.load(tmp_path / "model.kw")
    assert set(sys.modules) == before
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), expected)


SMUGGLE = """
import io, os, pickle, sys, zipfile
import joblib, numpy as np, torch
import kernelwright as kw
from kernelwright.persistence.archive import write_archive

class Malicious:
    def __reduce__(self):
        return os.mkdir, ("ran",)

def attempt(what):
    try:
        what()
    except (kw.ModelFileError, TypeError) as error:
        print(type(error).__name__)

attempt(lambda: kw.save(Malicious(), "a.kw"))
attempt(lambda: kw.save(np.array([Malicious()], dtype=object), "a.kw"))
pickled = pickle.dumps(Malicious())
open("b.kw", "wb").write(pickled)
torch.save(Malicious(), "c.kw")
joblib.dump(Malicious(), "d.kw")
np.savez(open("e.kw", "wb"), a=np.array([Malicious()], dtype=object))
entry = {"kind": "array", "dtype": "|O", "shape": [len(pickled) // 8], "order": [0], "bytes": 0}
with open("f.kw", "wb") as file:
    write_archive(file, {"root": {"ref": 0}, "table": [entry]}, [memoryview(pickled)])
with zipfile.ZipFile("g.kw", "w") as archive:
    archive.writestr("manifest.json", pickled)
for name in "bcdefg":
    attempt(lambda: kw.load(f"{name}.kw"))
print(os.path.exists("ran"))
"""


@pytest.mark.slow
def test_an_object_that_runs_code_when_it_is_unpickled_cannot_be_smuggled_in(tmp_path):
    done = subprocess.run([sys.executable, "-c", SMUGGLE], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["TypeError"] * 2 + ["ModelFileError"] * 6 + ["False"]


# Damage -----------------------------------------------------------------------------------------------------------


def mutated(content: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """A file with bits flipped, bytes overwritten, parts cut, doubled, or taken from another file."""
    changed = bytearray(content)
    start = int(random.integers(len(content)))
    length = int(random.integers(1, 1 + min(len(content) - start, 64)))
    match int(random.integers(8)):
        case 0 | 1:
            changed[start] ^= 1 << int(random.integers(8))
        case 2:
            changed[start : start + length] = random.bytes(length)
        case 3:
            del changed[start:]
        case 4:
            del changed[start : start + length]
        case 5:
            changed[start:start] = changed[start : start + length]
        case 6:
            changed[start : start + length] = other[start : start + length]
        case _:
            changed[start:] = other[int(random.integers(len(other))) :]
    return bytes(changed)


@pytest.mark.skipif(MUTATIONS == 0, reason="KERNELWRIGHT_MUTATIONS is 0")
def test_a_damaged_file_is_refused_or_loads_as_the_same_model(tmp_path):
    names = ["Krein SVC", "network", "label encoder", "pipeline of a table", "random Fourier", "alignment"]
    files, expected = [], []
    for name in names:
        model = MODELS[name].make()
        kw.save(model, tmp_path / "model.kw")
        files.append((tmp_path / "model.kw").read_bytes())
        expected.append(MODELS[name].read(model))
    random = np.random.default_rng(0)
    counts = {"refused": 0, "not changed": 0, "loaded the same": 0}
    for number in range(MUTATIONS):
        which = number % len(names)
        content = mutated(files[which], files[int(random.integers(len(files)))], random)
        (tmp_path / "model.kw").write_bytes(content)
        try:
            model = kw.load(tmp_path / "model.kw")
        except kw.ModelFileError:
            counts["refused"] += 1
            continue
        same_as = expected[which]
        np.testing.assert_array_equal(MODELS[names[which]].read(model), same_as)
        counts["not changed" if content == files[which] else "loaded the same"] += 1
    print(counts)
    assert counts["refused"] > 0.8 * MUTATIONS


if __name__ == "__main__":
    make_fixtures(version=1)
