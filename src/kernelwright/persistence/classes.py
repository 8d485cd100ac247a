"""What a model file may name: classes that can be restored from it, and a few types and functions.

A name in a file is looked up here and nowhere else. So a file can make no object that is not a piece of a model.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

import kernelwright

__all__ = ["class_name", "class_of", "is_library_class", "thing_name", "thing_of"]

# Rooms without pieces of models; the first four lie above this one.
CLOSED_ROOMS = {"__main__", "cli", "experiments", "reports", "persistence", "datasets"}

# Public names of scikit-learn. Private ones are pieces of the public ones; some exist in some versions only.
SCIKIT_LEARN = {
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration _TemperatureScaling",
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor make_column_selector",
    "sklearn.compose._column_transformer": "_RemainderColsList",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.dummy": "DummyClassifier DummyRegressor",
    "sklearn.ensemble": "StackingClassifier StackingRegressor VotingClassifier VotingRegressor",
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
    "sklearn.utils._metadata_requests": "MetadataRequest MethodMetadataRequest",  # of scorers, in older versions
}

# Layers whose state is numbers and plain settings. Others, which hold functions, are restored like a user's own.
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

# Functions that settings of the classes above may name.
FUNCTIONS = {
    "sklearn.feature_selection": "chi2 f_classif f_regression mutual_info_classif mutual_info_regression",
    "sklearn.metrics": "accuracy_score average_precision_score balanced_accuracy_score brier_score_loss f1_score "
    "log_loss matthews_corrcoef mean_absolute_error mean_squared_error precision_score r2_score recall_score "
    "roc_auc_score root_mean_squared_error",
}


def class_of(name: str) -> type | None:
    """The class that a file means by ``name``, or None if it is not one of those that may be restored."""
    return _classes().get(name)


def class_name(cls: type) -> str | None:
    """How a file names a class, or None if it may not be restored."""
    return _class_names().get(cls)


def is_library_class(cls: type) -> bool:
    """Whether a class is one of this package."""
    return cls.__module__.partition(".")[0] == "kernelwright"


def thing_of(name: str) -> Any:
    """The type or function that a file means by ``name``, or None."""
    return _things().get(name)


def thing_name(thing: Any) -> str | None:
    """How a file names a type or function, or None if it may not."""
    return _thing_names().get(id(thing))


@cache
def _classes() -> dict[str, type]:
    own = {f"{cls.__module__}.{cls.__qualname__}": cls for module in _rooms() for cls in _pieces(module)}
    return own | dict(_listed(SCIKIT_LEARN)) | dict(_listed({"torch.nn": TORCH_LAYERS}))


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
    kinds["numpy.bool"] = kinds["numpy.bool_"] = np.bool_  # of numpy 2 and of numpy 1
    return scalars | kinds | ufuncs | plain | torch_dtypes | dict(_listed(FUNCTIONS))


@cache
def _thing_names() -> dict[int, str]:
    return {id(thing): name for name, thing in _things().items()}


def _rooms() -> Iterator[ModuleType]:
    """The modules of this package, those of missing optional dependencies left out."""
    for found in pkgutil.walk_packages(kernelwright.__path__, "kernelwright."):
        if found.name.split(".")[1] in CLOSED_ROOMS:
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError:
            continue


def _pieces(module: ModuleType) -> Iterator[type]:
    """Classes of a module that a model may have instances of."""
    for thing in vars(module).values():
        own = isinstance(thing, type) and thing.__module__ == module.__name__
        if own and not issubclass(thing, (BaseException, torch.autograd.Function)):
            yield thing


def _listed(names: dict[str, str]) -> Iterator[tuple[str, Any]]:
    for module_name, words in names.items():
        module = importlib.import_module(module_name)
        for word in words.split():
            if hasattr(module, word):
                yield f"{module_name}.{word}", getattr(module, word)
