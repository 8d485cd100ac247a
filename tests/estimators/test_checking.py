"""Words and objects that a user passes as ``learn`` and ``solver``, and the plan that is made of them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

from kernelwright import EmbeddingClassifier, learning, solvers
from kernelwright.estimators.checking import plan_of, settings_of
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.learning import LBFGS, METHODS, Adam, Folds, Given, LeaveOneOut, Median, Rademacher
from kernelwright.solvers import SOLVERS, Exact, Fourier, Herding, Landmarks

X, Y = make_moons(80, noise=0.25, random_state=0)


def probabilities(**options):
    return EmbeddingClassifier(Gaussian("median"), random_state=0, **options).fit(X, Y).predict_proba(X)


# Words stand for objects -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [*METHODS, None])
def test_a_word_to_learn_is_its_object(word):
    thing = Given() if word is None else METHODS[word]()
    np.testing.assert_array_equal(probabilities(learn=thing), probabilities(learn=word))


@pytest.mark.parametrize("word", SOLVERS)
def test_a_word_for_a_solver_is_its_object(word):
    thing = SOLVERS[word]()
    np.testing.assert_array_equal(probabilities(learn=None, solver=thing), probabilities(learn=None, solver=word))


@pytest.mark.parametrize(("word", "thing"), [("lbfgs", LBFGS()), ("adam", Adam())])
def test_a_word_for_an_optimiser_is_its_object(word, thing):
    def stop_after_five():
        seen = []

        def callback(step):
            seen.append(step)
            if len(seen) == 5:
                raise StopIteration

        return callback

    found = [probabilities(learn=Rademacher(optimizer=one), callback=stop_after_five()) for one in (word, thing)]
    np.testing.assert_array_equal(*found)


def test_settings_of_objects_are_those_that_count():
    assert EmbeddingClassifier(Gaussian(), learn=LeaveOneOut(optimizer=Adam(max_iter=7))).fit(X, Y).n_iter_ == 8
    assert EmbeddingClassifier(Gaussian(), learn=None, solver=Landmarks(13)).fit(X, Y).n_landmarks_ == 13
    assert EmbeddingClassifier(Gaussian(), learn=None, solver=Fourier(24)).fit(X, Y).n_landmarks_ == 24
    assert EmbeddingClassifier(Gaussian(), learn=None, solver=Exact("single")).fit(X, Y).precision_ == "single"
    weak, strong = (EmbeddingClassifier(Gaussian(), learn=Rademacher(w)).fit(X, Y).complexity_ for w in (0.01, 0.3))
    assert strong < weak


# scikit-learn reaches inside -------------------------------------------------------------------------------------


def with_objects():
    return EmbeddingClassifier(
        Gaussian(), learn=Rademacher(optimizer=Adam(max_iter=5)), solver=Landmarks(30), random_state=0
    )


def test_parameters_of_objects_are_reached_by_their_names():
    model = with_objects()
    changed = {
        "learn__complexity_weight": 0.5,
        "learn__batch_size": 20,
        "learn__optimizer__learning_rate": 0.01,
        "solver__n": 17,
        "kernel__lengthscale": 2.0,
    }
    assert changed.keys() <= model.get_params().keys()
    assert model.set_params(**changed) is model
    assert {name: model.get_params()[name] for name in changed} == changed
    assert (model.learn.complexity_weight, model.learn.optimizer.learning_rate, model.solver.n) == (0.5, 0.01, 17)
    assert model.fit(X, Y).n_landmarks_ == 17
    with pytest.raises(ValueError, match="Invalid parameter 'n_landmarks'"):
        model.set_params(solver__n_landmarks=3)


@pytest.mark.parametrize(
    ("grid", "best"),
    [
        ({"learn__complexity_weight": ["4e", "4e/n"]}, "4e/n"),
        ({"solver__n": [1, 50]}, 50),
        ({"learn__optimizer__learning_rate": [1e-9, 0.5]}, 0.5),
        ({"learn": [Median(), Rademacher("4e")]}, Median),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.filterwarnings("ignore::kernelwright.CollapseWarning", "ignore::kernelwright.CalibrationWarning")
def test_a_grid_over_parameters_of_objects(grid, best):
    learn = Rademacher("4e/n", optimizer=Adam(max_iter=40))
    model = EmbeddingClassifier(Gaussian(5.0), learn=learn, ridge=1.0, solver=Landmarks(40), random_state=0)
    search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(X, Y)
    (found,) = search.best_params_.values()
    assert type(found) is best if isinstance(best, type) else found == best
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0.05  # it makes a difference at all
    assert model.get_params()["learn__complexity_weight"] == "4e/n"  # the given objects are as they were


def test_a_clone_has_objects_of_its_own():
    model = with_objects()
    copied = clone(model)
    for mine, other in (
        (copied.learn, model.learn),
        (copied.learn.optimizer, model.learn.optimizer),
        (copied.solver, model.solver),
    ):
        assert type(mine) is type(other)
        assert mine is not other
    assert repr(copied) == repr(model)
    copied.set_params(learn__optimizer__max_iter=9, solver__n=3)
    assert (model.learn.optimizer.max_iter, model.solver.n) == (5, 30)


def test_a_fit_leaves_the_objects_as_they_are():
    model = with_objects()
    before, parts = repr(model.get_params()), (model.learn, model.learn.optimizer, model.solver)
    model.fit(X, Y)
    assert repr(model.get_params()) == before
    assert (model.learn, model.learn.optimizer, model.solver) == parts
    two = EmbeddingClassifier(Gaussian(), learn=model.learn, solver=model.solver, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(two.predict_proba(X), model.predict_proba(X))  # shared objects remember nothing


def test_settings_that_are_told_apart_by_what_is_inside_objects():
    model = with_objects().fit(X, Y)
    before = settings_of(model)
    assert settings_of(clone(model)) == before
    for name, value in {"learn__complexity_weight": 0.1, "learn__optimizer__max_iter": 6, "solver__n": 31}.items():
        assert settings_of(clone(model).set_params(**{name: value})) != before
    assert settings_of(clone(model).set_params(random_state=4, verbose=1)) == before
    exact = EmbeddingClassifier(Gaussian(), learn=Rademacher(optimizer=LBFGS(3)), random_state=0).fit(X, Y)
    exact.set_params(learn__optimizer__max_iter=4)
    assert list(exact.risk_bound("leave-one-out", loss="error").parts) == ["leave-one-out error"]


# What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"learn": Rademacher}, r"'learn' parameter of EmbeddingClassifier .* Got a class: use Rademacher\(\)"),
        ({"learn": Given}, r"use Given\(\)"),
        ({"solver": Landmarks}, r"'solver' parameter of EmbeddingClassifier .* Got a class: use Landmarks\(\)"),
        ({"learn": Rademacher(optimizer=Adam)}, r"'optimizer' parameter of Rademacher .* use Adam\(\)"),
    ],
    ids=["learn", "given", "solver", "optimizer"],
)
def test_a_class_in_place_of_an_object_is_refused_with_advice(options, advice):
    with pytest.raises(TypeError, match=advice):
        EmbeddingClassifier(Gaussian(), **options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learn": "magic"}, r"'learn' parameter of EmbeddingClassifier must be one of \['auto', .*Rademacher\(\)"),
        ({"learn": 3}, "'learn' parameter of EmbeddingClassifier"),
        ({"learn": Landmarks()}, "'learn' parameter of EmbeddingClassifier"),
        ({"learn": Adam()}, "'learn' parameter of EmbeddingClassifier"),
        ({"solver": "cholesky"}, r"'solver' parameter of EmbeddingClassifier must be one of .*Landmarks\(\)"),
        ({"solver": None}, "'solver' parameter of EmbeddingClassifier"),
        ({"solver": Rademacher()}, "'solver' parameter of EmbeddingClassifier"),
        ({"learn": Rademacher(optimizer="sgd")}, r"'optimizer' parameter of Rademacher must be one of .*LBFGS\(\)"),
        ({"learn": Rademacher(optimizer=Exact())}, "'optimizer' parameter of Rademacher"),
    ],
)
def test_what_is_no_such_object_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingClassifier(Gaussian(), **options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learn": learning.Auto(max_iter=0)}, "'max_iter' parameter of Auto"),
        ({"learn": learning.Auto("5e")}, "'complexity_weight' parameter of Auto"),
        ({"learn": learning.Auto(tol=-1.0)}, "'tol' parameter of Auto"),
        ({"learn": Given(kernel_share=1.0)}, "'kernel_share' parameter of Given"),
        ({"learn": Median(holdout_share=0.0)}, "'holdout_share' parameter of Median"),
        ({"learn": Rademacher(-1.0)}, "'complexity_weight' parameter of Rademacher"),
        ({"learn": Rademacher(epsilon=0.5)}, "'epsilon' parameter of Rademacher"),
        ({"learn": learning.HeldOut(batch_size=1)}, "'batch_size' parameter of HeldOut"),
        ({"learn": learning.EmpiricalRisk(epsilon=0.0)}, "'epsilon' parameter of EmpiricalRisk"),
        ({"learn": LeaveOneOut(loss="hinge")}, "'loss' parameter of LeaveOneOut"),
        ({"learn": Folds(1)}, "'n_folds' parameter of Folds"),
        ({"learn": learning.CrossValidation(1)}, "'n_folds' parameter of CrossValidation"),
        ({"learn": Rademacher(optimizer=LBFGS(0))}, "'max_iter' parameter of LBFGS"),
        ({"learn": Rademacher(optimizer=Adam(-0.1))}, "'learning_rate' parameter of Adam"),
        ({"learn": Rademacher(optimizer=Adam(patience=0))}, "'patience' parameter of Adam"),
        ({"learn": Rademacher(optimizer=Adam(batch_order="sorted"))}, "'batch_order' parameter of Adam"),
        ({"solver": solvers.Auto("half")}, "'precision' parameter of Auto"),
        ({"solver": Exact("half")}, "'precision' parameter of Exact"),
        ({"solver": Landmarks(0)}, "'n' parameter of Landmarks"),
        ({"solver": Landmarks(5, "half")}, "'precision' parameter of Landmarks"),
        ({"solver": Fourier(2.5)}, "'n' parameter of Fourier"),
        ({"solver": Herding(-3)}, "'n' parameter of Herding"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_settings_inside_objects_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingClassifier(Gaussian(), **options).fit(X, Y)


# The plan --------------------------------------------------------------------------------------------------------


def test_a_plan_has_objects_and_a_kernel_of_its_own():
    kernel = Gaussian(2.0)
    plan = plan_of(EmbeddingClassifier(kernel, ridge=0.3, random_state=5))
    assert (type(plan.method), type(plan.solver)) == (learning.Auto, solvers.Auto)
    assert (plan.ridge, plan.random_state, plan.scale, plan.default_kernel, plan.warm) == (0.3, 5, None, False, False)
    assert plan.kernel is not kernel
    assert plan.kernel.get_params() == kernel.get_params()
    default = plan_of(EmbeddingClassifier())
    assert (default.scale, default.default_kernel, default.explicit) == ("views", True, False)
    assert plan_of(EmbeddingClassifier(features=RandomFourier(5))).explicit
    precomputed = plan_of(EmbeddingClassifier("precomputed", solver=solvers.Auto("single")))
    assert (type(precomputed.solver), precomputed.solver.precision) == (Exact, "single")


@pytest.mark.parametrize(
    ("kernel", "learn", "expected"),
    [
        (Gaussian(1.0), None, True),
        (Gaussian(1.0), Given(), True),
        (Gaussian("median"), None, False),  # which takes its length scale from the rows
        (Gaussian(1.0) + Laplace("median"), Given(), False),
        (Gaussian(1.0), "median", False),
        (Gaussian(1.0), "auto", False),
        (None, None, False),
        ("precomputed", None, False),
    ],
)
def test_a_kernel_is_as_given_where_nothing_of_it_is_from_the_rows(kernel, learn, expected):
    assert plan_of(EmbeddingClassifier(kernel, learn=learn)).as_given is expected


@pytest.mark.parametrize("learn", [None, Given()], ids=["None", "Given"])
def test_as_given_is_as_given_after_a_warm_start_too(learn):
    model = EmbeddingClassifier(Gaussian(2.0), learn="leave-one-out", ridge=5.0, warm_start=True).fit(X, Y)
    assert model.ridge_ != pytest.approx(5.0)
    model.set_params(learn=learn).fit(X, Y)
    assert (model.ridge_, float(model.kernel_.lengthscale.detach())) == pytest.approx((5.0, 2.0))


@pytest.mark.parametrize("method", [*METHODS.values(), Given], ids=lambda method: method.word)
@pytest.mark.filterwarnings("ignore::kernelwright.OverfitWarning")
def test_shares_belong_to_every_way_to_learn(method):
    steps = {"optimizer": LBFGS(1)} if "optimizer" in method().get_params() else {}
    learn = method(kernel_share=0.5, holdout_share=0.25, **steps)
    model = EmbeddingClassifier(Gaussian("median"), learn=learn, random_state=0).fit(X, Y)
    assert model.embedding_.rows.given.sum() == 30
    assert 0.0 < model.risk_bound("holdout").parts["held-out loss"] < 0.5
    assert model.risk_bound("rademacher-fixed-kernel").guaranteed
