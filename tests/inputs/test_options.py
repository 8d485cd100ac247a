"""Options: a word, an object, or an error that says what is expected."""

from numbers import Real
from typing import ClassVar

import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, InvalidParameterError

from kernelwright import (
    ConditionalMeanEmbedding,
    EmbeddingClassifier,
    EmbeddingNetworkClassifier,
    HyperKernelRidge,
    KreinSVC,
)
from kernelwright.inputs.options import Option, option_of
from kernelwright.learning import Folds


class Fruit(Option):
    """The class of the options."""


class Apple(Fruit):
    word = "apple"
    _parameter_constraints: ClassVar = {"weight": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, weight: float = 0.2) -> None:
        self.weight = weight


class Pear(Fruit):
    word = "pear"


class Quince(Fruit):
    """An option without a word."""


class Stone(Option):
    """Not an option."""


WORDS = {"apple": Apple, "pear": Pear, "pomme": Apple}


def option(given, **how):
    return option_of(given, WORDS, "fruit", "Basket", **how)


@pytest.mark.parametrize(("word", "kind"), WORDS.items())
def test_a_word_is_the_object_with_its_usual_settings(word, kind):
    found = option(word)
    assert type(found) is kind
    assert found.get_params() == kind().get_params()
    assert option(word) is not found


def test_an_object_is_itself():
    apple = Apple(0.5)
    assert option(apple) is apple


@pytest.mark.parametrize("weight", [0.0, -1.0, "heavy", None])
def test_an_object_with_a_wrong_setting_is_refused(weight):
    with pytest.raises(InvalidParameterError, match="The 'weight' parameter of Apple must be a float in the range"):
        option(Apple(weight))


@pytest.mark.parametrize("kind", [Apple, Pear])
def test_a_class_is_refused_with_the_call_that_makes_an_object(kind):
    with pytest.raises(TypeError, match=rf"must be an object\. Got a class: use {kind.__name__}\(\)\."):
        option(kind)


@pytest.mark.parametrize("given", ["cherry", "APPLE", None, 3, Stone(), Stone, Quince(), ["apple"]], ids=str)
def test_anything_else_is_refused_with_the_choices(given):
    choices = r"must be one of \['apple', 'pear', 'pomme'\] or one of the objects Apple\(\), Pear\(\)\. Got .* instead"
    with pytest.raises(ValueError, match=f"The 'fruit' parameter of Basket {choices}"):
        option(given)


def test_a_kind_takes_objects_that_have_no_word():
    quince = Quince()
    assert option(quince, kind=Fruit) is quince
    with pytest.raises(TypeError, match="use Quince"):
        option(Quince, kind=Fruit)
    with pytest.raises(ValueError, match="fruit"):
        option(Stone(), kind=Fruit)


def test_options_follow_the_parameters_of_scikit_learn():
    apple = Apple().set_params(weight=0.7)
    assert clone(apple).weight == 0.7
    assert clone(apple) is not apple


@pytest.mark.parametrize(
    ("model", "params", "expected"),
    [
        (EmbeddingClassifier(), {"learn__complexity_weight": 0.5}, {"learn": "Auto", "learn__complexity_weight": 0.5}),
        (EmbeddingClassifier(learn="folds"), {"learn__n_folds": 3}, {"learn": "Folds", "learn__n_folds": 3}),
        (EmbeddingClassifier(solver="nystroem"), {"solver__n": 7}, {"solver": "Landmarks", "solver__n": 7}),
        (ConditionalMeanEmbedding(), {"learn__max_iter": 4}, {"learn": "Auto", "learn__max_iter": 4}),
        (
            EmbeddingNetworkClassifier(),
            {"training__max_epochs": 2},
            {"training": "Training", "training__max_epochs": 2},
        ),
        (HyperKernelRidge(solver="midpoint"), {"solver__n": 5}, {"solver": "Midpoints", "solver__n": 5}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nested_parameters_reach_into_words(model, params, expected):
    found = clone(model).set_params(**params).get_params()
    for name, value in expected.items():
        assert found[name] == value if "__" in name else type(found[name]).__name__ == value


def test_words_that_are_replaced_at_the_same_time_stay_words():
    model = EmbeddingClassifier().set_params(learn=Folds(), learn__n_folds=4)
    assert model.learn.n_folds == 4
    with pytest.raises(ValueError, match="Invalid parameter"):
        KreinSVC().set_params(learn__n_folds=4)
