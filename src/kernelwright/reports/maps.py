"""Maps of a classifier over a plane: two features, or two principal components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.reports.drawing import CLASS_COLOURS, legend, new_axes, plain

__all__ = ["DecisionProbabilityDisplay", "EntropyDisplay", "Plane"]

MARGIN = 0.25  # share of the range of the rows, added on each side to show regions without rows
METHODS = {"embedding": "entropy by the embedding", "clip": "entropy of the clipped outputs"}
MOST_ROWS = 2000  # drawn as points


@dataclass(frozen=True)
class Plane:
    """A plane in feature space: its points are ``origin + a first + b second``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports.maps import Plane
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> plane = Plane.of(X)
    >>> np.allclose(plane.coordinates(plane.points(np.array([[1.0, -2.0]]))), [[1.0, -2.0]])
    True
    """

    origin: np.ndarray
    directions: np.ndarray  # (2, d)
    back: np.ndarray  # (d, 2): differences from the origin -> coordinates
    names: tuple[str, str]
    caption: str = ""

    @classmethod
    def of(cls, X: np.ndarray, names: Sequence[str] | None = None) -> Plane:
        """Make the plane of two features, or of the first two principal components of the standardised features."""
        d = X.shape[1]
        if d < 2:
            raise ValueError(f"A map needs at least two features. Got {d}.")
        if d == 2:
            first, second = ("feature 1", "feature 2") if names is None else (str(names[0]), str(names[1]))
            return cls(np.zeros(2), np.eye(2), np.eye(2), (first, second))
        mean, deviation = X.mean(0), X.std(0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        _, sizes, components = np.linalg.svd((X - mean) / deviation, full_matrices=False)
        if len(sizes) < 2:
            raise ValueError("A map of principal components needs at least two rows.")
        # Fix the sign of each component, so that a plot does not depend on the linear algebra library.
        components = components[:2] * np.sign(components[np.arange(2), np.abs(components[:2]).argmax(1)])[:, None]
        share = float((sizes[:2] ** 2).sum() / max((sizes**2).sum(), 1e-300))
        caption = f"two principal components ({share:.0%} of the variance), the others at their mean"
        axes = ("first principal component", "second principal component")
        return cls(mean, components * deviation, (components / deviation).T, axes, caption)

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """Project rows onto the plane."""
        return (X - self.origin) @ self.back

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        """Return points of the plane as rows of features."""
        return self.origin + coordinates @ self.directions

    def grid(self, X: np.ndarray, resolution: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return horizontal and vertical coordinates, a little beyond the rows, and all grid points, row by row."""
        where = self.coordinates(X)
        low, high = where.min(0), where.max(0)
        margin = np.where(high > low, MARGIN * (high - low), 1.0)
        across, up = np.linspace(low - margin, high + margin, resolution).T
        columns, rows = np.meshgrid(across, up)
        return across, up, self.points(np.column_stack([columns.ravel(), rows.ravel()]))


class DecisionProbabilityDisplay:
    """Class probabilities over a plane, one colour per class, with the training rows on top.

    Parameters
    ----------
    grid : tuple of two ndarrays
        Coordinates of the picture's columns and rows.
    probabilities : ndarray of shape (rows, columns, n_classes)

    Attributes
    ----------
    ax_, figure_
    image_ : matplotlib.image.AxesImage

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from kernelwright.reports import DecisionProbabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> DecisionProbabilityDisplay.from_estimator(model, X, y, resolution=10).probabilities.shape
    (10, 10, 3)
    """

    labels: Any = None  # the sorted labels of all classes, if they are known

    def __init__(self, grid: tuple[np.ndarray, np.ndarray], probabilities: np.ndarray) -> None:
        self.grid, self.probabilities = grid, probabilities

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        resolution: int = 150,
        names: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        ax: Any = None,
        title: str = "",
    ) -> DecisionProbabilityDisplay:
        """Draw a fitted classifier over the range of X, a little beyond it on each side.

        More than two features are drawn on the plane of the two principal components of X. ``classes`` are names to
        show in place of ``estimator.classes_``.
        """
        X = np.asarray(X, dtype=np.float64)
        plane = Plane.of(X, _names(estimator, names))
        across, up, points = plane.grid(X, resolution)
        p = np.asarray(estimator.predict_proba(points))
        display = cls((across, up), p.reshape(resolution, resolution, -1))
        display.labels = estimator.classes_
        shown = [str(name) for name in (estimator.classes_ if classes is None else classes)]
        title = _with_caption(title, plane.caption)
        return display.plot(plane.coordinates(X), y, names=plane.names, classes=shown, ax=ax, title=title)

    def plot(
        self,
        X: np.ndarray | None = None,
        y: Any = None,
        *,
        names: Sequence[str] = ("", ""),
        classes: Sequence[str] | None = None,
        ax: Any = None,
        title: str = "",
    ) -> DecisionProbabilityDisplay:
        """Draw into ``ax`` (a new one if None), with rows at coordinates ``X`` on top.

        The colours follow the sorted labels ``y``; without labels, rows are drawn in white.
        """
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        ax = new_axes(ax)
        m = self.probabilities.shape[2]
        colours = np.array([to_rgb(CLASS_COLOURS[k % len(CLASS_COLOURS)]) for k in range(m)])
        picture = np.clip(self.probabilities @ colours, 0, 1)
        self.image_ = ax.imshow(picture, **_placed(self.grid))
        if X is not None:
            _scatter(ax, X, _fill(y, self.labels))
        shown = [str(k) for k in range(m)] if classes is None else list(classes)
        few = slice(len(CLASS_COLOURS))  # beyond that, colours repeat and a legend would mislead
        legend(ax, [Patch(color=colour) for colour in colours[few]], shown[few], loc="upper right")
        _name_axes(ax, names, title)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class EntropyDisplay:
    """Entropy of the label over a plane, by one or both estimators of [Hsu2018]_, with the training rows on top.

    Boundaries between classes are bright, and so are regions without training rows.

    Parameters
    ----------
    grid : tuple of two ndarrays
        Coordinates of the picture's columns and rows.
    entropy : dict of str to ndarray of shape (rows, columns)
        In nats, by method: "embedding", "clip".
    highest : float
        The entropy that is drawn brightest: the logarithm of the number of classes.

    Attributes
    ----------
    ax_ : Axes, or ndarray of Axes if there are several methods
    figure_
    images_ : list of matplotlib.image.AxesImage

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelwright import EmbeddingClassifier
    >>> from kernelwright.reports import EntropyDisplay
    >>> X, y = make_moons(40, noise=0.1, random_state=0)
    >>> display = EntropyDisplay.from_estimator(EmbeddingClassifier(random_state=0).fit(X, y), X, y, resolution=8)
    >>> [ax.get_title() for ax in display.ax_]
    ['entropy by the embedding', 'entropy of the clipped outputs']
    """

    labels: Any = None  # the sorted labels of all classes, if they are known

    def __init__(self, grid: tuple[np.ndarray, np.ndarray], entropy: Mapping[str, np.ndarray], highest: float) -> None:
        self.grid, self.entropy, self.highest = grid, dict(entropy), highest

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        methods: Sequence[str] = ("embedding", "clip"),
        resolution: int = 150,
        names: Sequence[str] | None = None,
        ax: Any = None,
        title: str = "",
    ) -> EntropyDisplay:
        """Draw a fitted classifier over the range of X, a little beyond it on each side.

        More than two features are drawn on the plane of the two principal components of X, mapped back to features
        with all other components at their mean; the title says so.
        """
        X = np.asarray(X, dtype=np.float64)
        plane = Plane.of(X, _names(estimator, names))
        across, up, points = plane.grid(X, resolution)
        found = {word: estimator.entropy(points, method=word).reshape(resolution, resolution) for word in methods}
        display = cls((across, up), found, float(np.log(len(estimator.classes_))))
        display.labels = estimator.classes_
        title = _with_caption(title, plane.caption)
        return display.plot(plane.coordinates(X), y, names=plane.names, ax=ax, title=title)

    def plot(
        self,
        X: np.ndarray | None = None,
        y: Any = None,
        *,
        names: Sequence[str] = ("", ""),
        ax: Any = None,
        title: str = "",
    ) -> EntropyDisplay:
        """Draw into ``ax``, one for each method (new ones if None), with rows at coordinates ``X`` on top."""
        axes = np.atleast_1d(self._axes() if ax is None else ax)
        if len(axes) != len(self.entropy):
            raise ValueError(f"Entropies by {len(self.entropy)} methods need as many axes. Got {len(axes)}.")
        self.images_ = []
        for each, (method, values) in zip(axes, self.entropy.items(), strict=True):
            drawn = each.imshow(values, cmap="magma", vmin=0.0, vmax=self.highest, **_placed(self.grid))
            self.images_.append(drawn)
            if X is not None:
                _scatter(each, X, _fill(y, self.labels))
            _name_axes(each, names, METHODS.get(method, method))
        self.figure_ = axes[0].figure
        bar = self.figure_.colorbar(self.images_[-1], ax=list(axes))
        bar.set_label("nats")
        if title:
            if len(axes) == 1:
                axes[0].set_title(plain(f"{axes[0].get_title()}: {title}", 200), fontsize="medium", wrap=True)
            else:
                self.figure_.suptitle(plain(title, 200), fontsize="medium")
        self.ax_ = axes[0] if len(axes) == 1 else axes
        return self

    def _axes(self) -> Any:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.6 * len(self.entropy) + 0.4, 3.8), layout="constrained")
        return figure.subplots(1, len(self.entropy))


def _names(estimator: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    return getattr(estimator, "feature_names_in_", None) if names is None else names


def _with_caption(title: str, caption: str) -> str:
    return ": ".join(part for part in (title, caption) if part)


def _placed(grid: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    across, up = grid
    extent = (across[0], across[-1], up[0], up[-1])
    return {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "bilinear"}


def _scatter(ax: Any, X: np.ndarray, fill: np.ndarray | None) -> None:
    """Draw rows as points in given colours; if there are very many, an evenly spaced subset."""
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(int))
    colours: Any = "white" if fill is None else fill[some]
    ax.scatter(*X[some].T, s=12, c=colours, edgecolor="#1c2733" if fill is None else "white", linewidth=0.5)


def _fill(y: Any, classes: Any = None) -> np.ndarray | None:
    """Return the colour of each label: by its place among the classes, or among the sorted labels themselves."""
    from matplotlib.colors import to_rgb

    if y is None:
        return None
    y = np.asarray(y)
    places = np.searchsorted(np.unique(y) if classes is None else np.asarray(classes), y)
    return np.array([to_rgb(colour) for colour in CLASS_COLOURS])[places % len(CLASS_COLOURS)]


def _name_axes(ax: Any, names: Sequence[str], title: str) -> None:
    ax.set(xlabel=plain(names[0]) if names[0] else "", ylabel=plain(names[1]) if names[1] else "")
    ax.set_title(plain(title, 200) if title else "", fontsize="medium", wrap=True)
