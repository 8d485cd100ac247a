"""Base of the small objects that a user may pass instead of a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError

__all__ = ["Option", "TakesOptions", "option_of", "refuse_kernel_names"]

# Other libraries' names of kernels, in lower case and without separators: as words, and as classes.
KERNEL_NAMES = {
    "rbf": "Gaussian",
    "gaussian": "Gaussian",
    "squaredexponential": "Gaussian",
    "laplace": "Laplace",
    "laplacian": "Laplace",
    "linear": "Linear",
    "dotproduct": "Linear",
    "matern": "Matern",
    "poly": "Polynomial",
    "polynomial": "Polynomial",
    "rationalquadratic": "RationalQuadratic",
    "tabular": "Tabular",
}
HYPERKERNEL_NAMES = {"rbf": "Gaussian", "gaussian": "Gaussian", "wishart": "Wishart"}
FEATURE_NAMES = {
    "fourier": "RandomFourier",
    "randomfourier": "RandomFourier",
    "rff": "RandomFourier",
    "rbfsampler": "RandomFourier",
    "nystroem": "Nystroem",
    "poly": "Polynomial",
    "polynomial": "Polynomial",
    "polynomialfeatures": "Polynomial",
}
KERNEL_PARAMETERS = {
    "kernel": ("kernels", KERNEL_NAMES),
    "target_kernel": ("kernels", KERNEL_NAMES),
    "hyperkernel": ("hyperkernels", HYPERKERNEL_NAMES),
    "features": ("features", FEATURE_NAMES),
}


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


def refuse_kernel_names(model: BaseEstimator) -> None:
    """Raise an error if a kernel or feature map is a name ("rbf"), a class or from elsewhere; suggest the object.

    Examples
    --------
    >>> from kernelwright import EmbeddingClassifier
    >>> try:
    ...     EmbeddingClassifier("rbf").fit([[0.0], [1.0]], [0, 1])
    ... except ValueError as error:
    ...     print(error)
    The 'kernel' parameter of EmbeddingClassifier must be an object. Got 'rbf' instead: use kernels.Gaussian().
    """
    for parameter, (package, names) in KERNEL_PARAMETERS.items():
        given = getattr(model, parameter, None)
        own = type(given).__module__.startswith("kernelwright.")
        name = given if isinstance(given, str) else (given if isinstance(given, type) else type(given)).__name__
        near = names.get(name.lower().replace("_", "").replace("-", "").replace(" ", ""))
        if near is not None and not own:
            shown = f"the class {name}" if isinstance(given, type) else repr(given)
            raise InvalidParameterError(
                f"The '{parameter}' parameter of {type(model).__name__} must be an object. Got {shown} instead: use "
                f"{package}.{near}()."
            )


class TakesOptions(BaseEstimator):
    """An estimator some of whose parameters are words for objects."""

    _options: ClassVar[dict[str, Callable[[Any], Any]]] = {}  # of each parameter: from a word (or None) to its object

    def _validate_params(self) -> None:
        refuse_kernel_names(self)
        super()._validate_params()

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``learn__...`` also reaches into a word, which becomes the object it stands for."""
        for name, made in self._options.items():
            nested = any(key.startswith(f"{name}__") for key in params) and name in self.get_params(deep=False)
            if nested and name not in params and not hasattr(getattr(self, name), "set_params"):
                setattr(self, name, made(getattr(self, name)))
        return super().set_params(**params)
