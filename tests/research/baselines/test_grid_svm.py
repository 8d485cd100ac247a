import numpy as np
from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright.research.baselines import GridSearchSVC


@parametrize_with_checks([GridSearchSVC(cv=2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_grid_is_searched_and_the_winner_calibrated():
    X, y = make_moons(150, noise=0.2, random_state=0)
    model = GridSearchSVC().fit(X, y)
    assert len(model.search_.cv_results_["params"]) == 35
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)


def test_a_class_with_one_row_gets_votes_in_place_of_probabilities():
    X, y = make_moons(40, noise=0.2, random_state=0)
    y[0] = 7
    p = GridSearchSVC(cv=2).fit(X, y).predict_proba(X)
    assert set(np.unique(p)) == {0.0, 1.0}
