import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from kernelwright.evaluation import (
    Evaluation,
    class_quality,
    confidence_sentence,
    confidence_stretches,
    never_right,
)


def test_precision_and_recall_are_those_of_scikit_learn(rng):
    y, predicted = rng.integers(0, 4, 300), rng.integers(0, 4, 300)
    found = Evaluation.of(np.eye(4)[predicted], y, classes="abcd", protocol="by hand")
    precision, recall, _, rows = precision_recall_fscore_support(y, predicted)
    qualities = class_quality(found.confusion(), found.classes)
    assert [each.precision.value for each in qualities] == pytest.approx(precision)
    assert [each.recall.value for each in qualities] == pytest.approx(recall)
    assert [each.rows for each in qualities] == rows.tolist()
    assert never_right(qualities) == []


def test_a_class_that_is_never_right_is_said_in_words():
    confusion = np.array([[90, 0, 3, 0], [146, 0, 0, 0], [7, 0, 0, 0], [0, 0, 0, 0]])
    said = never_right(class_quality(confusion, ["usual", "rare", "odd", "absent"]))
    assert said == [
        "rare is never right: it was never predicted, although 146 of 246 rows are of this class.",
        "odd is never right: it was predicted 3 times, each time wrongly, although 7 of 246 rows are of this class.",
    ]


def draw(rng, confidence, truth):
    """Return rows with a confidence, whose predictions are right with the probability ``truth``."""
    p = np.column_stack([confidence, 1 - confidence])
    return p, (rng.uniform(size=len(p)) >= truth(confidence)).astype(int)


def test_a_calibrated_model_has_no_stretches(rng):
    false = 0
    for seed in range(200):
        p, y = draw(np.random.default_rng(seed), rng.uniform(0.5, 1, 1500), lambda c: c)
        false += bool(confidence_stretches(p, y))
    assert false <= 20
    assert "is justified" in confidence_sentence(p, y)


def test_a_dip_is_named_with_its_range(rng):
    def dipped(c):
        return np.where((c >= 0.7) & (c < 0.8), c - 0.2, c)

    p, y = draw(rng, rng.uniform(0.5, 1, 4000), dipped)
    (found,) = confidence_stretches(p, y)
    assert (found.low, found.high) == (0.7, 0.8)
    assert found.gap == pytest.approx(0.2, abs=0.05)
    sentence = confidence_sentence(p, y)
    assert "overconfident where it is 70 to 80 % sure" in sentence
    assert "Elsewhere, its confidence is justified." in sentence


def test_over_and_underconfidence_that_cancel_are_both_named(rng):
    p, y = draw(rng, rng.uniform(0.5, 1, 6000), lambda c: np.where(c < 0.75, c + 0.12, c - 0.12))
    assert abs((p.argmax(1) == y).mean() - p.max(1).mean()) < 0.03  # on average nothing is to be seen
    sentence = confidence_sentence(p, y)
    assert "underconfident where it is 50 to" in sentence
    assert "and overconfident where it is" in sentence


def test_few_rows_are_not_called_calibrated(rng):
    p, y = np.tile([0.9, 0.1], (6, 1)), np.array([0, 0, 0, 0, 0, 1])
    assert "too few rows to tell" in confidence_sentence(p, y)


@pytest.mark.parametrize(("right", "word"), [(lambda c: 0.5 + (c - 0.5) / 2, "over"), (lambda c: c + 0.12, "under")])
def test_what_is_wrong_almost_everywhere_is_not_called_justified_elsewhere(right, word):
    random = np.random.default_rng(0)
    confidence = random.uniform(0.5, 1.0, 4000)
    labels = (random.random(4000) > right(confidence)).astype(int)
    p = np.column_stack([confidence, 1.0 - confidence])
    (found,) = confidence_stretches(p, labels)
    assert found.low <= 0.6
    assert found.high == 1.0
    sentence = confidence_sentence(p, labels)
    assert sentence.startswith(f"It is {word}confident where it is")
    rows = (confidence < found.low) | (confidence >= found.high)  # what is said to be justified
    assert abs(confidence[rows].sum() - (labels[rows] == 0).sum()) < 0.05 * max(rows.sum(), 1)
