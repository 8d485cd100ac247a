"""Estimators inside the tools of scikit-learn, and of SHAP: the same answers as by hand."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import BaggingRegressor, StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelwright import EmbeddingClassifier, EmbeddingNetworkClassifier, EmbeddingRegressor, kernels, networks
from kernelwright.tables import TrainingTable, as_table
from kernelwright.tables.pipelines import make_pipeline as table_pipeline

X, Y = load_iris(return_X_y=True, as_frame=True)
NAMES = Y.map({0: "setosa", 1: "versicolor", 2: "virginica"})
INPUTS, NUMBERS = (part[:120] for part in load_diabetes(return_X_y=True, as_frame=True))


def classifier(**options):
    return EmbeddingClassifier(**({"learn": None, "random_state": 0} | options))


def regressor():
    return EmbeddingRegressor(learn=None, random_state=0)


def test_left_out_probabilities_of_frames_are_those_of_single_fits():
    folds = StratifiedKFold(3)
    found = cross_val_predict(classifier(), X, NAMES, method="predict_proba", cv=folds)
    train, test = next(iter(folds.split(X, NAMES)))
    alone = classifier().fit(X.iloc[train], NAMES.iloc[train]).predict_proba(X.iloc[test])
    np.testing.assert_allclose(found[test], alone, atol=1e-12)


def test_a_grid_of_kernels_chooses_the_best_of_them():
    grid = {"kernel": [kernels.Gaussian(30.0), kernels.Gaussian(1.0)], "ridge": [1e-3]}
    search = GridSearchCV(classifier(), grid, cv=3, scoring="neg_log_loss").fit(X, NAMES)
    assert search.best_params_["kernel"].lengthscale == 1.0
    each = [
        cross_val_score(classifier(kernel=k, ridge=1e-3), X, NAMES, cv=3, scoring="neg_log_loss").mean()
        for k in grid["kernel"]
    ]
    assert search.cv_results_["mean_test_score"] == pytest.approx(each)


def test_pipelines_pass_names_and_networks_name_their_features():
    training = networks.Training(max_epochs=2)
    model = make_pipeline(StandardScaler(), EmbeddingNetworkClassifier(hidden=(3,), training=training, random_state=0))
    features = model.set_output(transform="pandas").fit(X, NAMES).transform(X)
    assert features.columns.tolist() == [f"embeddingnetworkclassifier{k}" for k in range(3)]
    assert model.get_feature_names_out().tolist() == features.columns.tolist()
    assert model[-1].feature_names_in_.tolist() == X.columns.tolist()


@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(classifier(), cv=2),
        CalibratedClassifierCV(FrozenEstimator(classifier().fit(X, NAMES)), method="temperature"),
        StackingClassifier([("embedding", classifier()), ("line", LogisticRegression(max_iter=500))], cv=2),
    ],
    ids=["calibrated", "frozen", "stacked"],
)
def test_classifiers_of_classifiers(model):
    assert clone(model).fit(X, NAMES).score(X, NAMES) > 0.93


@pytest.mark.parametrize(
    "model",
    [
        BaggingRegressor(regressor(), 3, random_state=0),
        TransformedTargetRegressor(regressor(), func=np.log1p, inverse_func=np.expm1),
        MultiOutputRegressor(regressor()),
    ],
    ids=["bagged", "transformed", "several"],
)
def test_regressors_of_regressors(model):
    several = isinstance(model, MultiOutputRegressor)
    y = np.c_[NUMBERS, -NUMBERS] if several else NUMBERS
    found = clone(model).fit(INPUTS, y).predict(INPUTS)
    assert np.corrcoef(found[:, 0] if several else found, NUMBERS)[0, 1] > 0.6


def test_weights_and_groups_are_routed():
    weights, groups = np.where(Y == 0, 3.0, 1.0), np.arange(150) % 30
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier().set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True)
        passed = {"sample_weight": weights, "groups": groups}
        found = cross_val_score(model, X, NAMES, cv=GroupKFold(2), params=passed)
    by_hand = []
    for train, test in GroupKFold(2).split(X, NAMES, groups):
        fitted = classifier().fit(X.iloc[train], NAMES.iloc[train], weights[train], groups[train])
        by_hand.append(fitted.score(X.iloc[test], NAMES.iloc[test], weights[test]))
    assert found == pytest.approx(by_hand)


def test_the_pipeline_of_a_table_is_an_estimator():
    frame = X.assign(colour=np.where(np.arange(150) % 2, "red", "blue"), kind=NAMES)
    data = TrainingTable.of(as_table(frame), "kind")
    model = table_pipeline(data.columns).set_params(classify__learn=None)
    assert cross_val_score(clone(model), data.frame, data.labels, cv=3).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("rows", [X, X.to_numpy()], ids=["frame", "array"])
def test_shap_explains_probabilities_of_frames_and_arrays(rows):
    shap = pytest.importorskip("shap")
    model = classifier().fit(rows, NAMES)
    found = shap.Explainer(model.predict_proba, rows)(rows[:3])
    np.testing.assert_allclose(found.values.sum(1) + found.base_values, model.predict_proba(rows[:3]), atol=1e-8)
    sampled = shap.KernelExplainer(model.predict_proba, rows[::10]).shap_values(rows[:2], silent=True)
    assert np.shape(sampled) == (2, 4, 3)
