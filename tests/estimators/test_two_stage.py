"""Both stages of kernel learning."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelwright as kw
from kernelwright import HyperKernelSVR, LearnedKernelClassifier
from kernelwright.estimators import two_stage


@parametrize_with_checks([LearnedKernelClassifier()])
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "learner",
    [
        None,
        HyperKernelSVR(random_state=0),
        kw.AlignmentKernel(),
        kw.research.baselines.RandomFeatureAlignment(300, random_state=0),
    ],
)
@pytest.mark.parametrize("classifier", [None, SVC(), kw.KreinSVC(correction="flip")])
def test_learners_and_classifiers_combine(learner, classifier):
    X, y = load_iris(return_X_y=True)
    model = LearnedKernelClassifier(learner, classifier).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert model.kernel_(X[:3]).shape == (3, 3)


def test_probabilities_where_the_second_stage_has_them():
    X, y = load_wine(return_X_y=True)
    assert not hasattr(LearnedKernelClassifier().fit(X, y), "predict_proba")
    with pytest.warns(kw.NumericalRepairWarning, match="indefinite"):
        model = LearnedKernelClassifier(classifier=kw.EmbeddingClassifier()).fit(X[::2], y[::2])
    P = model.predict_proba(X[1::2])
    assert np.allclose(P.sum(1), 1.0)
    assert np.array_equal(model.predict(X[1::2]), model.classes_[P.argmax(1)])


@pytest.mark.filterwarnings("ignore::kernelwright.NumericalRepairWarning")
def test_many_rows_go_through_landmarks(monkeypatch):
    monkeypatch.setattr(two_stage, "SUPPORT_VECTORS_UP_TO", 100)
    X, y = make_moons(600, noise=0.2, random_state=0)
    model = LearnedKernelClassifier().fit(X[:400], y[:400])
    assert isinstance(model.classifier_, kw.EmbeddingClassifier)
    assert model.score(X[400:], y[400:]) > 0.93


def test_a_classifier_without_a_kernel_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="a classifier with a parameter 'kernel'"):
        LearnedKernelClassifier(classifier=LogisticRegression()).fit(X, y)


def test_a_classifier_is_no_learner():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="must learn a kernel"):
        LearnedKernelClassifier(kw.research.baselines.BayesianMKL()).fit(X, y)


def test_classes_of_one_row():
    X, y = load_iris(return_X_y=True)
    rows = [0, 1, 60, 110]
    assert LearnedKernelClassifier().fit(X[rows], y[rows]).score(X[rows], y[rows]) > 0.7
