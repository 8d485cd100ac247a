"""The names that a model file may use: saved classes of this package, a list from scikit-learn and torch, functions.

A name in a file is looked up only here, so a file can create no object that is not a piece of a model.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

import kernelwright
from kernelwright.storage.saved import REGISTRY, SavedClass

__all__ = [
    "is_library_class",
    "listed_class",
    "listed_name",
    "saved_class",
    "saved_class_of",
    "saved_classes",
    "thing_name",
    "thing_of",
]

# Packages without pieces of models; the first four import this one.
CLOSED_ROOMS = {"__main__", "cli", "research.experiments", "reports", "persistence", "datasets"}

# Public names of scikit-learn, and private names of their pieces. Some exist only in some versions.
SCIKIT_LEARN = {
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration _TemperatureScaling",
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor make_column_selector",
    "sklearn.compose._column_transformer": "_RemainderColsList",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.dummy": "DummyClassifier DummyRegressor",
    "sklearn.ensemble": "StackingClassifier StackingRegressor VotingClassifier VotingRegressor",
    "sklearn.feature_extraction.text": "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer",
    "sklearn.feature_selection": "SelectKBest SelectPercentile VarianceThreshold",
    "sklearn.frozen": "FrozenEstimator",
    "sklearn.impute": "KNNImputer MissingIndicator SimpleImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.kernel_ridge": "KernelRidge",
    "sklearn.linear_model": "LinearRegression LogisticRegression LogisticRegressionCV Ridge RidgeClassifier "
    "RidgeClassifierCV RidgeCV",
    "sklearn.metrics._scorer": "_PassthroughScorer _Scorer",
    "sklearn.model_selection": "GridSearchCV KFold PredefinedSplit RandomizedSearchCV RepeatedKFold "
    "RepeatedStratifiedKFold ShuffleSplit StratifiedKFold StratifiedShuffleSplit",
    "sklearn.multiclass": "OneVsOneClassifier OneVsRestClassifier _ConstantPredictor",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": "Binarizer FunctionTransformer KBinsDiscretizer KernelCenterer LabelBinarizer "
    "LabelEncoder MaxAbsScaler MinMaxScaler MultiLabelBinarizer Normalizer OneHotEncoder OrdinalEncoder "
    "PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler StandardScaler TargetEncoder",
    "sklearn.svm": "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR",
    "sklearn.utils": "Bunch",
    "sklearn.utils._metadata_requests": "MetadataRequest MethodMetadataRequest",  # of scorers in older versions
}

# Layers whose state is numbers and plain settings. Layers with functions are restored like a user's own modules.
TORCH_LAYERS = (
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
    "AlphaDropout AvgPool1d AvgPool2d AvgPool3d BatchNorm1d BatchNorm2d BatchNorm3d Bilinear CELU ConstantPad1d "
    "ConstantPad2d ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Dropout "
    "Dropout1d Dropout2d Dropout3d ELU Embedding FeatureAlphaDropout Flatten GELU GLU GroupNorm Hardshrink "
    "Hardsigmoid Hardswish Hardtanh Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU "
    "Linear LocalResponseNorm LogSigmoid LogSoftmax MaxPool1d MaxPool2d MaxPool3d Mish ModuleDict ModuleList PReLU "
    "PixelShuffle PixelUnshuffle RMSNorm RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReplicationPad1d "
    "ReplicationPad2d SELU Sequential SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh "
    "Tanhshrink Threshold Unflatten Upsample ZeroPad1d ZeroPad2d ZeroPad3d"
)

# Functions that the settings of these classes may refer to.
FUNCTIONS = {
    "sklearn.feature_selection": "chi2 f_classif f_regression mutual_info_classif mutual_info_regression",
    "sklearn.metrics": "accuracy_score average_precision_score balanced_accuracy_score brier_score_loss f1_score "
    "log_loss matthews_corrcoef mean_absolute_error mean_squared_error precision_score r2_score recall_score "
    "roc_auc_score root_mean_squared_error",
}


def saved_class(name: str) -> SavedClass | None:
    """Return the class of this package with a stable name, or None."""
    _import_rooms()
    return REGISTRY.by_name(name)


def saved_classes() -> list[SavedClass]:
    """Return all classes of this package that a file may contain, sorted by name."""
    _import_rooms()
    return sorted(REGISTRY, key=lambda declared: declared.name)


def saved_class_of(cls: type) -> SavedClass | None:
    """Return the declaration of a saved class of this package, or None if it cannot be saved."""
    return REGISTRY.of(cls)


def listed_class(name: str) -> type | None:
    """Return the class of scikit-learn or torch with this name in files, or None if it is not listed."""
    return _classes().get(name)


def listed_name(cls: type) -> str | None:
    """Return the name of a scikit-learn or torch class in files, or None if it is not listed."""
    return _class_names().get(cls)


def is_library_class(cls: type) -> bool:
    """Return whether a class belongs to this package; classes defined in doctests do not."""
    own = cls.__module__.partition(".")[0] == "kernelwright"
    return own and getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls


def thing_of(name: str) -> Any:
    """Return the type or function with this name in files, or None."""
    return _things().get(name)


def thing_name(thing: Any) -> str | None:
    """Return the name of a type or function in files, or None if it is not listed."""
    return _thing_names().get(id(thing))


@cache
def _classes() -> dict[str, type]:
    return dict(_listed(SCIKIT_LEARN)) | dict(_listed({"torch.nn": TORCH_LAYERS}))


@cache
def _class_names() -> dict[type, str]:
    return {cls: name for name, cls in _classes().items()}


@cache
def _things() -> dict[str, Any]:
    scalars = {f"numpy.{kind.__name__}": kind for kind in np.sctypeDict.values()}
    kinds: dict[str, Any] = {f"numpy.{kind.__name__}": kind for kind in (np.number, np.integer, np.floating)}
    ufuncs = {f"numpy.{name}": thing for name, thing in vars(np).items() if isinstance(thing, np.ufunc)}
    plain = {f"builtins.{kind.__name__}": kind for kind in (bool, int, float, str, bytes, object, list, tuple, dict)}
    torch_dtypes = {f"torch.{n}": thing for n, thing in vars(torch).items() if isinstance(thing, torch.dtype)}
    kinds["numpy.bool"] = kinds["numpy.bool_"] = np.bool_  # names of numpy 2 and numpy 1
    return scalars | kinds | ufuncs | plain | torch_dtypes | dict(_listed(FUNCTIONS))


@cache
def _thing_names() -> dict[int, str]:
    return {id(thing): name for name, thing in _things().items()}


@cache
def _import_rooms() -> None:
    """Import the modules of this package, so that their classes are registered."""
    _import_below(kernelwright)


def _import_below(package: ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name.removeprefix("kernelwright.") in CLOSED_ROOMS:
            continue
        with suppress(ImportError):  # some need packages that are not installed
            module = importlib.import_module(found.name)
            if found.ispkg:
                _import_below(module)


def _listed(names: dict[str, str]) -> Iterator[tuple[str, Any]]:
    for module_name, words in names.items():
        module = importlib.import_module(module_name)
        for word in words.split():
            if hasattr(module, word):
                yield f"{module_name}.{word}", getattr(module, word)
