"""A short bag of words for columns of free text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelwright.storage.saved import saved

__all__ = ["WordBag", "told_words"]

FEWEST_TEXTS = 30
FEWEST_WORDS = 3  # in the median text: with fewer, the cells are names
SHARED_BY = 5  # texts that must have a word, or it is not used
TOO_COMMON = 0.5  # share of texts beyond which a word says nothing
COVERED = 0.8  # share of texts that must have a word that is used
MOST_WORDS, MOST_NUMBERS = 2000, 12
EXAMINED = 5000  # texts that decide which words are used


def told_words(given: Any) -> str:
    """Say how a column of text becomes a bag of words, or "" if its texts share too few words.

    A bag pays if there are at least 30 texts, their median has at least three words, and four in five of them have a
    word that occurs in at least five texts and in at most half of them. The target is not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.words import told_words
    >>> told_words(pd.Series([f"a {['red', 'green', 'blue'][k % 3]} bicycle {k}" for k in range(60)]))
    'a bag of 3 words, in 2 numbers'
    """
    if len(given) < FEWEST_TEXTS:
        return ""
    given = _some(list(given))
    if float(np.median([len(text.split()) for text in given])) < FEWEST_WORDS:
        return ""
    found = _counted(given)
    if found is None or float(np.mean(found[1].getnnz(1) > 0)) < COVERED:
        return ""
    n_words = len(found[0])
    return f"a bag of {n_words} words, in {_n_numbers(n_words)} numbers"


def _some(texts: list[str]) -> list[str]:
    """Return the texts that decide which words are used, evenly spread if there are many."""
    return texts[:: -(-len(texts) // EXAMINED)]


def _counter(**options: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(dtype=np.float64, **options)


def _counted(texts: list[str]) -> tuple[tuple[str, ...], Any] | None:
    """Return the words that are used, and their counts in each text; None if there are fewer than two words."""
    counter = _counter(min_df=SHARED_BY, max_df=TOO_COMMON, max_features=MOST_WORDS)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # there is no such word
        return None
    return (tuple(counter.get_feature_names_out()), counts) if counts.shape[1] > 1 else None


def _n_numbers(n_words: int) -> int:
    return min(MOST_NUMBERS, n_words - 1)


@saved("word-bag")
@dataclass(frozen=True)
class WordBag:
    """Numbers that sum up the words of a text: term frequencies and their singular vectors.

    Parameters
    ----------
    source : str
        The column.
    vocabulary : tuple of str
    idf : ndarray
        The inverse document frequency of each word.
    components : ndarray of shape (n_numbers, n_words)
    """

    source: str
    vocabulary: tuple[str, ...]
    idf: np.ndarray
    components: np.ndarray

    @classmethod
    def of(cls, source: str, texts: np.ndarray) -> WordBag | None:
        """Choose the words and the combinations of them that differ most; None if there are too few words.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright.inputs.frames.words import WordBag
        >>> texts = np.array(["red wine", "white wine", "red roof", "white roof", None] * 10, dtype=object)
        >>> bag = WordBag.of("note", texts)
        >>> bag.vocabulary, bag(texts).shape, bool(np.isnan(bag(texts)[4]).all())
        (('red', 'roof', 'white', 'wine'), (50, 3), True)
        """
        from sklearn.decomposition import TruncatedSVD

        found = _counted(_some([text for text in texts if isinstance(text, str)]))
        if found is None:
            return None
        words, counts = found
        idf = np.log((1 + counts.shape[0]) / (1 + counts.getnnz(0))) + 1.0
        svd = TruncatedSVD(_n_numbers(len(words)), random_state=0).fit(_weighted(counts, idf))
        return cls(source, words, idf, svd.components_)

    @property
    def n_numbers(self) -> int:
        """The number of columns."""
        return len(self.components)

    @cached_property
    def _counting(self) -> Any:
        return _counter(vocabulary=list(self.vocabulary))

    def __call__(self, texts: np.ndarray) -> np.ndarray:
        """Return the numbers of each text; NaN for a gap."""
        there = np.array([isinstance(text, str) for text in texts], dtype=bool)
        numbers = np.full((len(texts), self.n_numbers), np.nan)
        if there.any():
            numbers[there] = _weighted(self._counting.transform(texts[there]), self.idf) @ self.components.T
        return numbers


def _weighted(counts: Any, idf: np.ndarray) -> Any:
    """Return the weighted frequency of each word in each text, as a sparse matrix with rows of unit length."""
    from sklearn.preprocessing import normalize

    counts.data = 1.0 + np.log(counts.data)
    return normalize(counts.multiply(idf).tocsr())
