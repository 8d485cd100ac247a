"""The example runs, and its text is correct."""

from tests.examples.loading import load


def test_a_learned_mixture_finds_the_hidden_word(capsys):
    accuracies = load("strings").main(700)
    assert accuracies["spectrum kernel, learned mixture"] > 0.8
    assert accuracies["spectrum kernel, learned mixture"] > accuracies["spectrum kernel, k = 2"] + 0.05
    assert accuracies["logistic regression, letter by letter"] < 0.65
    shown = capsys.readouterr().out
    assert "support of 0.00" in shown
    assert "Learned weights: k = 2: 0.0" in shown


def test_half_of_the_strings_have_the_word():
    example = load("strings")
    X, y = example.strings(1000, misspelt=0.0)
    has_word = [example.WORD in s for s in X]
    assert all(found for found, label in zip(has_word, y, strict=True) if label == "with")
    assert 0.4 < sum(has_word) / len(X) < 0.6
