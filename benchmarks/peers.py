"""The methods of the suite, each as its authors recommend and with nothing tuned by hand.

A method is made by a function without arguments and has ``fit``, ``predict_proba`` and ``classes_``. Packages are
imported when a method is made, so that this file can be imported without them (by docs/tables.py, for example).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FOLDS = 3  # of EasyMKL's search


@dataclass(frozen=True)
class Method:
    """How to make a method, its package and what it is given."""

    make: Callable[[], Any]
    package: str
    given: str
    quick: bool = True  # fast enough for --quick
    usual: bool = True  # part of `make bench`, not only of `make bench-more`
    most_rows: int | None = None  # not tried with more training rows


def kernelwright() -> Any:
    """Make the default of this library."""
    from kernelwright import EmbeddingClassifier

    load_compiled_loops()
    return EmbeddingClassifier(random_state=0)


@cache
def load_compiled_loops() -> None:
    """Load or compile the loops, which is not part of a fit; a small table would not use them."""
    from kernelwright import EmbeddingClassifier
    from kernelwright.learning import Auto

    random = np.random.default_rng(0)
    EmbeddingClassifier(learn=Auto(max_iter=1)).fit(random.normal(size=(1200, 8)), np.arange(1200) % 2)


def grid_svc() -> Any:
    """Make a support vector machine with a grid search."""
    from kernelwright.research.baselines import GridSearchSVC

    return GridSearchSVC()


def nystroem() -> Any:
    """Make logistic regression on landmark features."""
    return make_pipeline(
        StandardScaler(), Nystroem(n_components=500, random_state=0), LogisticRegression(max_iter=1000)
    )


def catboost() -> Any:
    """Make CatBoost."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(verbose=0, random_state=0, allow_writing_files=False, thread_count=1)


def lightgbm() -> Any:
    """Make LightGBM."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, random_state=0, n_jobs=1)


def xrfm() -> Any:
    """Make xRFM."""
    from xrfm import xRFM

    return ValidatedXRFM(xRFM)


class ValidatedXRFM:
    """xRFM with a fifth of the training rows for validation, as its authors do."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ValidatedXRFM":
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.scaler = StandardScaler().fit(X)
        X = self.scaler.transform(X).astype(np.float32)
        try:
            parts = train_test_split(X, labels, test_size=0.2, stratify=labels, random_state=0)
        except ValueError:  # a class with a single row
            parts = train_test_split(X, labels, test_size=0.2, random_state=0)
        X_fit, X_check, y_fit, y_check = parts
        self.model = self.kind(device="cpu", tuning_metric="brier")
        self.model.fit(X_fit, y_fit, X_check, y_check)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self.scaler.transform(X).astype(np.float32)))


def thundersvm() -> Any:
    """Make ThunderSVM with a grid search."""
    from thundersvm import SVC

    return ThunderSVM(SVC)


class ThunderSVM:
    """The grid of GridSearchSVC, with ThunderSVM's own probabilities."""

    def __init__(self, svc: Any) -> None:
        self.svc = svc

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ThunderSVM":
        self.classes_ = np.unique(y)
        self.scaler = StandardScaler().fit(X)
        X = self.scaler.transform(X)
        grid = {"C": list(10.0 ** np.arange(-1, 4)), "gamma": list(10.0 ** np.arange(-5, 2))}
        best = GridSearchCV(self.svc(n_jobs=1), grid, cv=5, refit=False).fit(X, y).best_params_
        self.model = self.svc(**best, probability=True, n_jobs=1).fit(X, y)
        # Its columns are in the order in which classes first appear in the training rows.
        self.order = np.argsort(list(dict.fromkeys(y.tolist())))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self.scaler.transform(X)))[:, self.order]


def easy_mkl() -> Any:
    """Make EasyMKL with a grid search."""
    import MKLpy.algorithms  # noqa: F401  (fails now if it is not installed)

    return SearchedEasyMKL()


class EasyMKLClassifier(ClassifierMixin, BaseEstimator):
    """EasyMKL on ten Gaussian kernels of standardised rows, with a support vector machine on their mixture."""

    def __init__(self, lam: float = 0.1, C: float = 1.0) -> None:
        self.lam = lam
        self.C = C

    def kernels(self, X: np.ndarray, Z: np.ndarray) -> list[Any]:
        """Compute ten Gaussian kernels."""
        import torch
        from sklearn.metrics.pairwise import euclidean_distances

        squared = euclidean_distances(X, Z, squared=True) / X.shape[1]
        return [torch.from_numpy(np.exp(-gamma * squared)) for gamma in 2.0 ** np.arange(-6, 4)]

    def fit(self, X: np.ndarray, y: np.ndarray) -> "EasyMKLClassifier":
        from MKLpy.algorithms import EasyMKL
        from sklearn.svm import SVC

        self.classes_ = np.unique(y)
        self.scaler_ = StandardScaler().fit(X)
        self.X_ = self.scaler_.transform(X)
        self.model_ = EasyMKL(lam=self.lam, learner=SVC(C=self.C)).fit(self.kernels(self.X_, self.X_), y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        found = self.model_.decision_function(self.kernels(self.scaler_.transform(X), self.X_))
        # One against the rest of many classes is a dictionary by class.
        columns = [found[each] for each in self.classes_] if isinstance(found, dict) else found
        return np.asarray(columns).T

    def predict(self, X: np.ndarray) -> np.ndarray:
        found = self.decision_function(X)
        return self.classes_[found.argmax(1) if found.ndim == 2 else (found > 0).astype(int)]


class SearchedEasyMKL:
    """Lambda and C from a grid in three folds, then Platt's sigmoid, as in GridSearchSVC."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SearchedEasyMKL":
        self.classes_, counts = np.unique(y, return_counts=True)
        grid = {"lam": [0.1, 0.5, 0.9], "C": [1.0, 10.0, 100.0]}
        search = GridSearchCV(EasyMKLClassifier(), grid, cv=FOLDS).fit(X, y)
        folds = int(np.clip(counts.min(), 2, FOLDS))
        self.model = CalibratedClassifierCV(search.best_estimator_, cv=folds, ensemble=False).fit(X, y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict_proba(X)


def dirichlet() -> Any:
    """Make GPyTorch's exact process on Dirichlet targets."""
    from benchmarks.gaussian_processes import DirichletProcess

    return DirichletProcess()


def deep_kernel() -> Any:
    """Make GPyTorch's variational process on a network."""
    from benchmarks.gaussian_processes import DeepKernelProcess

    return DeepKernelProcess()


METHODS = {
    "kernelwright": Method(kernelwright, "kernelwright", "`EmbeddingClassifier(random_state=0)`, rows as they come"),
    "SVC, grid": Method(
        grid_svc, "scikit-learn", "standardised rows; C and gamma from a 5 x 7 grid in five folds; Platt's sigmoid"
    ),
    "Gaussian process": Method(
        lambda: make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(1.0), random_state=0)),
        "scikit-learn",
        "standardised rows; a Gaussian kernel whose two numbers it learns; one against the rest",
        quick=False,
    ),
    "logistic regression": Method(
        lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), "scikit-learn", "standardised rows"
    ),
    "random forest": Method(
        lambda: RandomForestClassifier(500, random_state=0), "scikit-learn", "500 trees, else as it comes"
    ),
    "histogram boosting": Method(lambda: HistGradientBoostingClassifier(random_state=0), "scikit-learn", "as it comes"),
    "Nystroem + logistic": Method(
        nystroem, "scikit-learn", "standardised rows; 500 landmarks of a Gaussian kernel, gamma as it comes"
    ),
    "GPyTorch, Dirichlet": Method(
        dirichlet,
        "gpytorch",
        "standardised rows; exact, one length scale a class, 50 steps of Adam at 0.1",
        quick=False,
    ),
    "GPyTorch, deep kernel": Method(
        deep_kernel,
        "gpytorch",
        "standardised rows; variational with 128 inducing points on a network's features; the epoch that is best on a "
        "tenth of the rows",
        quick=False,
    ),
    "xRFM": Method(xrfm, "xrfm", "standardised rows, a fifth of them to validate; tuned by the Brier score"),
    "CatBoost": Method(catboost, "catboost", "as it comes"),
    "LightGBM": Method(lightgbm, "lightgbm", "as it comes"),
    "EasyMKL": Method(
        easy_mkl,
        "MKLpy",
        "standardised rows; ten Gaussian kernels; lambda and C from a 3 x 3 grid in three folds; Platt's sigmoid",
        quick=False,
    ),
    "ThunderSVM": Method(
        thundersvm,
        "thundersvm-cpu",
        "standardised rows; the grid of SVC; its own probabilities",
        quick=False,
    ),
}
