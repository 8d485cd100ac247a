"""How an estimator models the distribution of a number: the values of ``distribution=``."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kernelwright.inputs.options import Option, option_of
from kernelwright.storage.saved import saved

__all__ = ["Direct", "Distribution", "LocationScale", "Stacked", "distribution_of"]


class Distribution(Option):
    """A way to model the conditional distribution of a number.

    Parameters
    ----------
    transform : {"auto", "identity", "root", "log", "logit"}, default="auto"
        Increasing map of the target that is learned in its place. "auto" tries others than the identity for positive
        targets with a long upper tail (skewness above one) and for targets with two known bounds; leave-one-out CRPS in
        the units of the target decides. All quantiles are mapped back exactly.
    low, high : float or None, default=None
        Range of the target: no prediction leaves it. If both are None, the range is ``low=0`` for targets that are
        never negative and whose standard deviation exceeds half of their mean, and for those learned by their root or
        logarithm; it is unlimited for all others.
    discrete : {"auto", True, False}, default="auto"
        Whether the target has mass at its values only. "auto": if there are at most 100 different values, and on
        average ten rows of each. Whole numbers between the smallest and the largest are values too.
    n_thresholds : int, default=100
        Number of thresholds of the direct estimate of a continuous target.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "transform": [StrOptions({"auto", "identity", "root", "log", "logit"})],
        "low": [Interval(Real, None, None, closed="neither"), None],
        "high": [Interval(Real, None, None, closed="neither"), None],
        "discrete": [StrOptions({"auto"}), "boolean"],
        "n_thresholds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        *,
        transform: str = "auto",
        low: float | None = None,
        high: float | None = None,
        discrete: bool | str = "auto",
        n_thresholds: int = 100,
    ) -> None:
        self.transform = transform
        self.low = low
        self.high = high
        self.discrete = discrete
        self.n_thresholds = n_thresholds


@saved("stacked-distribution")
class Stacked(Distribution):
    """A mixture of :class:`LocationScale` and :class:`Direct`, weighted by leave-one-out CRPS.

    Parameters are those of :class:`Distribution`.
    """

    word: ClassVar[str] = "stacked"


@saved("location-scale-distribution")
class LocationScale(Distribution):
    """A location and a scale that depend on the row, and one shape for all rows.

    The scale is learned from the logarithms of leave-one-out residuals; the shape is that of the residuals over their
    scale. Best for continuous targets. Parameters are those of :class:`Distribution`.
    """

    word: ClassVar[str] = "location-scale"


@saved("direct-distribution")
class Direct(Distribution):
    """The conditional embedding of the indicators ``1{y <= t}``, whose squared loss is the CRPS.

    Best for discrete targets and for distributions with several modes. Parameters are those of :class:`Distribution`.
    """

    word: ClassVar[str] = "direct"


WORDS: dict[str, type[Distribution]] = {
    "auto": Stacked,
    **{option.word: option for option in (Stacked, LocationScale, Direct)},
}


def distribution_of(given: Any, owner: str) -> Distribution:
    """Return the object behind a ``distribution`` argument."""
    return option_of(given, WORDS, "distribution", owner, kind=Distribution)
