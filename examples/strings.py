"""Classify strings with a kernel that counts common substrings, and learn how long these should be.

    python examples/strings.py

The strings are synthetic: random letters A, C, G, T, and in half of them a hidden word, at any position and sometimes
misspelled. Methods that compare letters position by position cannot find it. The spectrum kernel [Leslie2002] counts
substrings of length k at any position; a sum of several, with learned weights, learns which k to use.
"""

import argparse

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kernelwright import EmbeddingClassifier
from kernelwright.kernels import ConvexSum, Spectrum

LETTERS = np.array(list("ACGT"))
WORD = "TATAATGC"


def strings(n: int, length: int = 60, misspelt: float = 0.05, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Return random strings, and whether they contain the hidden word."""
    rng = np.random.default_rng(seed)
    letters, y = rng.choice(LETTERS, (n, length)), rng.integers(0, 2, n)
    for row in np.flatnonzero(y):
        word = np.where(rng.random(len(WORD)) < misspelt, rng.choice(LETTERS, len(WORD)), list(WORD))
        start = rng.integers(length - len(WORD) + 1)
        letters[row, start : start + len(WORD)] = word
    return ["".join(row) for row in letters], np.where(y, "with", "without")


def main(n: int = 1500) -> dict[str, float]:
    X, y = strings(n)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)

    lengths = (2, 3, 4, 5, 6)
    kernel = ConvexSum([Spectrum(k) for k in lengths])
    model = EmbeddingClassifier(kernel, random_state=0).fit(X_train, y_train)
    weights = model.kernel_.weights.detach().numpy()
    accuracies = {"spectrum kernel, learned mixture": model.score(X_test, y_test)}

    fixed = EmbeddingClassifier(Spectrum(2), random_state=0).fit(X_train, y_train)
    accuracies["spectrum kernel, k = 2"] = fixed.score(X_test, y_test)

    by_place = make_pipeline(OneHotEncoder(), LogisticRegression(max_iter=500))
    table, new = (np.array([list(s) for s in some]) for some in (X_train, X_test))
    accuracies["logistic regression, letter by letter"] = by_place.fit(table, y_train).score(new, y_test)

    print(f"{len(X_train)} strings to train on, such as {X_train[0]}\n")
    for name, accuracy in accuracies.items():
        print(f"{name:<40}{accuracy:.1%}")
    print("\nLearned weights: " + ", ".join(f"k = {k}: {w:.2f}" for k, w in zip(lengths, weights, strict=True)))
    print(f"Log loss {log_loss(y_test, model.predict_proba(X_test)):.3f} (0.693 is a fair coin).")
    support = float(model.support(["N" * 60])[0])
    print(f"A string of letters that were never seen has a support of {support:.2f} (1 or more is usual).")
    return accuracies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strings", type=int, default=1500)
    main(parser.parse_args().strings)
