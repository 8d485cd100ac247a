"""Answers as frames of pandas, with the index of the rows that were asked about."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np

from kernelwright.inputs.dask_rows import is_dask

__all__ = ["AnswersInFrames", "in_frames", "the_classes", "the_ends"]

T = TypeVar("T")


class AnswersInFrames:
    """An estimator whose answers may be frames of pandas: methods that can are marked by :func:`in_frames`."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what methods such as ``predict`` and ``predict_proba`` return for a frame of pandas.

        By default these are arrays, as the scorers and searches of scikit-learn expect: with "pandas", those that ask
        for probabilities of two classes (``roc_auc``, ``neg_log_loss``) fail, since they index columns by number. So
        set it on the model whose answers you use, not on one to be cross-validated by such a score; ``accuracy`` and
        ``r2`` work with both. Only this setting counts: ``sklearn.set_config(transform_output=...)``, which would
        reach into all scorers, changes no answers. ``clone`` and model files keep it.

        Parameters
        ----------
        transform : {"default", "pandas"} or None, default=None
            With "pandas", an answer to a frame or series of pandas has its index: a series, or a frame with a column
            for each class, level, end of the interval, or target. Answers to arrays and to frames of other libraries
            stay arrays, and so do those of three dimensions, such as quantiles of several targets. "default": arrays.
            ``None`` changes nothing. A network also takes "polars", for its ``transform``.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kernelwright import EmbeddingClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = EmbeddingClassifier(random_state=0).fit(X, y.map({0: "setosa", 1: "versicolor", 2: "virginica"}))
        >>> print(model.set_output(transform="pandas").predict_proba(X.loc[[7, 99]]).round(1))
            setosa  versicolor  virginica
        7      1.0         0.0        0.0
        99     0.0         1.0        0.0
        """
        known = ("default", "pandas", "polars") if hasattr(self, "transform") else ("default", "pandas")
        if transform is not None and transform not in known:
            raise ValueError(f"transform must be one of {', '.join(map(repr, known))}, or None. Got {transform!r}.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self


def in_frames(names: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method of :class:`AnswersInFrames` return a series or frame, if this was set and the rows are a frame.

    ``names`` takes the arguments of the method but the rows, and returns the names of the last axis. Inside, and chunk
    by chunk, the method sees an estimator that returns arrays.
    """

    def marked(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def either(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
            if getattr(self, "_sklearn_output_config", {}).get("transform") != "pandas":
                return method(self, X, *arguments, **options)
            found = method(_with_arrays(self), X, *arguments, **options)
            if is_dask(X) or not hasattr(X, "iloc"):
                return found
            columns = None if names is None else np.atleast_1d(names(self, *arguments, **options))
            parts = [_framed(each, X.index, columns) for each in (found if isinstance(found, tuple) else (found,))]
            return tuple(parts) if isinstance(found, tuple) else parts[0]

        return either

    return marked


def _with_arrays(model: T) -> T:
    """Return the same estimator without the setting; fitted parts are shared."""
    twin = object.__new__(type(model))
    vars(twin).update({name: value for name, value in vars(model).items() if name != "_sklearn_output_config"})
    return twin


def _framed(found: Any, index: Any, names: np.ndarray | None) -> Any:
    """Return an answer as a series or a frame; one of three dimensions stays as it is."""
    import pandas as pd

    values = np.asarray(found)
    if values.ndim == 1:
        return pd.Series(values, index=index)
    columns = names if names is not None and len(names) == values.shape[-1] else None
    return found if values.ndim > 2 else pd.DataFrame(values, index=index, columns=columns)


def the_classes(model: Any, *_: Any, **__: Any) -> Any:
    """Name a column for each class."""
    return model.classes_


def the_ends(*_: Any, **__: Any) -> Any:
    """Name the two columns of an interval."""
    return ["low", "high"]
