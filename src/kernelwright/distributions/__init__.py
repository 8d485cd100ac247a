"""Distributions of numbers: the values of ``distribution=`` of :class:`~kernelwright.EmbeddingRegressor`.

====================  ========================  ==========================================================
word                  object                    what it is
====================  ========================  ==========================================================
``"stacked"``         :class:`Stacked`          both of the following, weighted by leave-one-out CRPS
``"location-scale"``  :class:`LocationScale`    a mean and a scale for each row, one shape for all
``"direct"``          :class:`Direct`           the distribution function at many thresholds
``"auto"``            :class:`Stacked`
====================  ========================  ==========================================================
"""

from kernelwright.distributions.options import Direct, Distribution, LocationScale, Stacked, distribution_of

__all__ = ["Direct", "Distribution", "LocationScale", "Stacked", "distribution_of"]


def __dir__() -> list[str]:
    return __all__
