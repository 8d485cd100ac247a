"""The methods that predict numbers, each as its authors recommend and with nothing tuned by hand.

A method is made by a function without arguments and has ``fit`` and ``forecast``. Packages are imported when a method
is made, so that this file can be imported without them.
"""

from functools import cache
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.forecasts import (
    Forecast,
    ModelForecast,
    NormalForecast,
    PointForecast,
    QuantileForecast,
    levels,
)
from benchmarks.peers import Method

BOOSTED_LEVELS = 30  # quantiles of CatBoost, which fits all of them together: the time grows with their number
FOREST_LEVELS = 90


class Ours:
    """The default of this library."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Ours":
        from kernelwright import EmbeddingRegressor

        self.model = EmbeddingRegressor(random_state=0).fit(X, y)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        return ModelForecast(self.model, X)


def kernelwright() -> Any:
    """Make the default of this library."""
    load_compiled_loops()
    return Ours()


@cache
def load_compiled_loops() -> None:
    """Load or compile the loops, which is not part of a fit; a small table would not use them."""
    from kernelwright import EmbeddingRegressor
    from kernelwright.learning import Auto

    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 8))
    EmbeddingRegressor(learn=Auto(max_iter=1)).fit(X, X[:, 0] + random.normal(size=1200))


class Point:
    """A regressor that predicts a number for each row."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Point":
        self.model.fit(X, y)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        return PointForecast(np.ravel(self.model.predict(X)).astype(float))


def ridge() -> Any:
    """Make ridge regression; generalised cross-validation chooses the penalty."""
    return Point(make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 30))))


def random_forest() -> Any:
    """Make a random forest."""
    return Point(RandomForestRegressor(500, random_state=0))


def lightgbm() -> Any:
    """Make LightGBM."""
    from lightgbm import LGBMRegressor

    return Point(LGBMRegressor(verbose=-1, random_state=0, n_jobs=1))


def catboost() -> Any:
    """Make CatBoost with the squared error."""
    from catboost import CatBoostRegressor

    return Point(CatBoostRegressor(verbose=0, random_state=0, allow_writing_files=False, thread_count=1))


class QuantileBoosting:
    """CatBoost with the pinball losses of all levels together."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "QuantileBoosting":
        from catboost import CatBoostRegressor

        alphas = ",".join(f"{level:.8f}" for level in levels(BOOSTED_LEVELS))
        self.model = CatBoostRegressor(
            loss_function=f"MultiQuantile:alpha={alphas}",
            verbose=0,
            random_state=0,
            allow_writing_files=False,
            thread_count=1,
        ).fit(X, y)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        quantiles = np.asarray(self.model.predict(X))
        return QuantileForecast(quantiles.mean(1), quantiles)


def quantile_boosting() -> Any:
    """Make CatBoost with quantiles."""
    import catboost  # noqa: F401  (fails now if it is not installed)

    return QuantileBoosting()


class QuantileForest:
    """A forest that remembers the targets in its leaves."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "QuantileForest":
        from quantile_forest import RandomForestQuantileRegressor

        self.model = RandomForestQuantileRegressor(500, random_state=0, n_jobs=1).fit(X, y)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        mean = self.model.predict(X, quantiles="mean")
        return QuantileForecast(mean, self.model.predict(X, quantiles=list(levels(FOREST_LEVELS))))


def quantile_forest() -> Any:
    """Make a quantile forest."""
    import quantile_forest  # noqa: F401  (fails now if it is not installed)

    return QuantileForest()


class NaturalBoosting:
    """Normal distributions of NGBoost; as its authors do, a fifth of the rows chooses the steps, then all are used."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "NaturalBoosting":
        from ngboost import NGBRegressor

        settings = {"verbose": False, "random_state": 0}
        X_fit, X_check, y_fit, y_check = train_test_split(X, y, test_size=0.2, random_state=0)
        search = NGBRegressor(n_estimators=2000, **settings)
        search.fit(X_fit, y_fit, X_val=X_check, Y_val=y_check, early_stopping_rounds=50)
        self.model = NGBRegressor(n_estimators=search.best_val_loss_itr + 1, **settings).fit(X, y)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        found = self.model.pred_dist(X)
        return NormalForecast(found.params["loc"], found.params["scale"])


def ngboost() -> Any:
    """Make NGBoost."""
    import ngboost  # noqa: F401  (fails now if it is not installed)

    return NaturalBoosting()


class GaussianProcess:
    """The process of scikit-learn: a Gaussian kernel with a length scale for each column, and noise."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "GaussianProcess":
        kernel = ConstantKernel(1.0) * RBF(np.ones(X.shape[1])) + WhiteKernel(0.1)
        process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
        self.model = make_pipeline(StandardScaler(), process).fit(X, y)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        return NormalForecast(*self.model.predict(X, return_std=True))


def exact_process() -> Any:
    """Make GPyTorch's exact process."""
    from benchmarks.gaussian_processes import ExactRegression

    return ExactRegression()


class ValidatedXRFMRegressor:
    """xRFM with a fifth of the training rows for validation, as its authors do."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ValidatedXRFMRegressor":
        self.rows, self.targets = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
        X, y = self.rows.transform(X).astype(np.float32), self.targets.transform(y[:, None]).astype(np.float32)
        X_fit, X_check, y_fit, y_check = train_test_split(X, y, test_size=0.2, random_state=0)
        self.model = self.kind(device="cpu", tuning_metric="mse")
        self.model.fit(X_fit, y_fit, X_check, y_check)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        found = np.asarray(self.model.predict(self.rows.transform(X).astype(np.float32)), dtype=float)
        return PointForecast(self.targets.inverse_transform(found.reshape(-1, 1))[:, 0])


def xrfm() -> Any:
    """Make xRFM."""
    from xrfm import xRFM

    return ValidatedXRFMRegressor(xRFM)


def real_mlp() -> Any:
    """Make RealMLP with its tuned defaults."""
    from pytabkit import RealMLP_TD_Regressor

    return Point(RealMLP_TD_Regressor(device="cpu", random_state=0, n_threads=1, verbosity=0))


def tab_m() -> Any:
    """Make TabM with its defaults."""
    from pytabkit import TabM_D_Regressor

    return Point(TabM_D_Regressor(device="cpu", random_state=0, n_threads=1, verbosity=0))


METHODS: dict[str, Method] = {
    "kernelwright": Method(kernelwright, "kernelwright", "`EmbeddingRegressor(random_state=0)`, rows as they come"),
    "CatBoost": Method(catboost, "catboost", "as it comes, squared error"),
    "CatBoost, quantiles": Method(
        quantile_boosting,
        "catboost",
        f"MultiQuantile at {BOOSTED_LEVELS} levels (k - 1/2) / {BOOSTED_LEVELS}, else as it comes; predicts their mean",
        quick=False,
        usual=False,
    ),
    "LightGBM": Method(lightgbm, "lightgbm", "as it comes"),
    "random forest": Method(random_forest, "scikit-learn", "500 trees, else as it comes"),
    "quantile forest": Method(
        quantile_forest,
        "quantile-forest",
        f"500 trees, else as it comes; quantiles at {FOREST_LEVELS} levels (k - 1/2) / {FOREST_LEVELS}",
    ),
    "NGBoost": Method(
        ngboost,
        "ngboost",
        "a normal distribution; at most 2000 steps, chosen on a fifth of the rows, then fitted on all",
        quick=False,
        usual=False,
    ),
    "GPyTorch, exact": Method(
        exact_process,
        "gpytorch",
        "standardised rows and targets; Matern 5/2, a length scale for each column, learned from at most 1000 rows by "
        "100 steps of Adam at 0.1; up to 5000 rows",
        quick=False,
        most_rows=5000,
    ),
    "ridge": Method(ridge, "scikit-learn", "standardised rows; the penalty by leave-one-out"),
    "Gaussian process": Method(
        GaussianProcess,
        "scikit-learn",
        "standardised rows and targets; a Gaussian kernel with a length scale for each column; up to 2000 rows",
        quick=False,
        usual=False,
        most_rows=2000,
    ),
    "xRFM": Method(
        xrfm, "xrfm", "standardised rows and targets, a fifth of them to validate", quick=False, usual=False
    ),
    "RealMLP": Method(real_mlp, "pytabkit", "RealMLP-TD, as it comes", quick=False, usual=False),
    "TabM": Method(tab_m, "pytabkit", "TabM-D, as it comes", quick=False, usual=False),
}
