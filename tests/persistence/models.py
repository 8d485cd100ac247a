"""Small fitted models, each with the results that are compared after saving and loading."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
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
from kernelwright import features, hyperkernels, learning, solvers
from kernelwright.kernels import ConvexSum, Gaussian, Laplace, Linear, Matern, Spectrum
from kernelwright.research import baselines

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
    """A user's network, whose class is not stored in files; one layer is used twice."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.again, self.last = self.first, nn.Linear(4, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.again(torch.tanh(self.norm(self.first(x))))))


@dataclass(frozen=True)
class Model:
    """How a model is fitted, and the results that are compared after saving and loading."""

    make: Any
    read: Any = lambda model: model.predict_proba(NEW)


def similarities() -> np.ndarray:
    target = np.tanh(X @ X.T)
    target[3, 5] = target[5, 3] = np.nan
    return target


def embedding(*args: Any, **settings: Any) -> Model:
    return Model(lambda: kw.EmbeddingClassifier(*args, random_state=0, **settings).fit(X, Y))


def network(*args: Any, **settings: Any) -> Model:
    training = {"training": kw.networks.Training(max_epochs=3)}
    return Model(lambda: kw.EmbeddingNetworkClassifier(*args, random_state=0, **training | settings).fit(X, LABELS))


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


MODELS: dict[str, Model] = {
    "default": embedding(),
    "composite": embedding(2.0 * Matern(nu=2.5) + Linear() * Gaussian(ard=True) + 1.0, learn=learning.Auto(max_iter=5)),
    "convex sum": embedding(
        ConvexSum([Gaussian(), Laplace()], [0.5, 0.5]), learn=learning.Rademacher(optimizer=learning.LBFGS(5))
    ),
    "mini-batches": embedding(Gaussian(), learn=learning.HeldOut(optimizer=learning.Adam(0.1, 5), batch_size=10)),
    "kernel and bounds on rows of their own": embedding(
        Gaussian(), learn=learning.Folds(3, kernel_share=0.5, holdout_share=0.2)
    ),
    "landmarks": embedding(solver=solvers.Landmarks(10)),
    "fourier": embedding(solver=solvers.Fourier(10)),
    "herding": embedding(solver=solvers.Herding(10)),
    "random Fourier": embedding(features=features.RandomFourier(20)),
    "Nystroem": embedding(features=features.Nystroem(Laplace(), 10)),
    "polynomial": embedding(features=features.Polynomial(2)),
    "network features": embedding(
        features=features.Network(nn.Sequential(nn.Linear(4, 5), nn.Tanh())), learn=learning.Auto(max_iter=3)
    ),
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
    "network with dropout and a kernel": network(kw.networks.MLP((5, 3), dropout=0.2), kernel=Gaussian()),
    "network with options": network(learn=kw.learning.HeldOut(share=0.3), head=kw.networks.HeadOptions(sup=2.0)),
    "layers": network(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sequential(nn.Tanh(), nn.Linear(6, 3)))),
    "convolutions": Model(
        lambda: kw.EmbeddingNetworkClassifier(
            nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            training=kw.networks.Training(max_epochs=2),
            random_state=0,
        ).fit(IMAGES, Y),
        lambda model: model.predict_proba(IMAGES),
    ),
    "mean embedding": Model(
        lambda: kw.ConditionalMeanEmbedding(random_state=0).fit(X, X[:, 0] + X[:, 1]),
        lambda model: np.column_stack([model.expectation(NEW), model.quantile(NEW, [0.1, 0.9]), model.sample(NEW, 3)]),
    ),
    "mean embedding, landmarks": Model(
        lambda: kw.ConditionalMeanEmbedding(
            Gaussian(), learn=learning.Given(holdout_share=0.2), solver=solvers.Landmarks(8), random_state=0
        ).fit(X, X[:, :2]),
        lambda model: np.append(
            model.expectation(NEW).ravel(), [model.risk_bound().total, model.score(NEW, NEW[:, :2])]
        ),
    ),
    "mean embedding of labels": Model(
        lambda: kw.ConditionalMeanEmbedding(Gaussian(), prior="marginal").fit(X, LABELS),
        lambda model: model.expectation(NEW),
    ),
    "hyper ridge": pairs(kw.HyperKernelRidge(random_state=0)),
    "hyper ridge of a matrix": pairs(kw.HyperKernelRidge(random_state=0), similarities()),
    "hyper ridge, Wishart": pairs(
        kw.HyperKernelRidge(hyperkernels.Wishart(), solver=kw.hyper.LandmarkPairs(5), random_state=0)
    ),
    "hyper ridge in parts": pairs(
        kw.HyperKernelRidge(solver=kw.hyper.Partition(2, kw.hyper.Midpoints(5)), learn=kw.hyper.HeldOutMetric(2))
    ),
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


def round_trip(model: Any, folder: Path, **how: Any) -> Any:
    kw.save(model, folder / "model.kw")
    return kw.load(folder / "model.kw", **how)
