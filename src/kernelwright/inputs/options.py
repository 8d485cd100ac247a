"""Base of the small objects that a user may pass instead of a word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from sklearn.base import BaseEstimator

__all__ = ["Option", "option_of"]


class Option(BaseEstimator):
    """A choice with its own settings, which ``set_params``, ``clone`` and ``GridSearchCV`` can reach.

    A subclass has a ``word``, its short form, and constraints on its settings.
    """

    word: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def checked(self) -> Self:
        """Return the object; raise an error if a setting is invalid."""
        self._validate_params()
        return self


Chosen = TypeVar("Chosen", bound=Option)


def option_of(given: Any, words: Mapping[str, type[Chosen]], name: str, owner: str, *, kind: Any = None) -> Chosen:
    """Return the object behind a word, with default settings, or the given object, checked.

    ``kind`` is the class of accepted objects, if it includes more than the words stand for.
    """
    kind = kind or tuple(words.values())
    if isinstance(given, str) and given in words:
        return words[given]()
    if isinstance(given, kind):
        return given.checked()
    if isinstance(given, type) and issubclass(given, kind):
        raise TypeError(f"The '{name}' parameter of {owner} must be an object. Got a class: use {given.__name__}().")
    objects = ", ".join(dict.fromkeys(f"{each.__name__}()" for each in words.values()))
    raise ValueError(
        f"The '{name}' parameter of {owner} must be one of {sorted(words)} or one of the objects {objects}. "
        f"Got {given!r} instead."
    )
