"""Learning a kernel function by regression over pairs of points, in a hyper-RKHS [Liu2021]_.

:func:`fit_pairs` does a whole fit. The solvers (:class:`AutoPairs` and those after it) and :class:`HeldOutMetric` are
what :class:`kernelwright.HyperKernelRidge` and :class:`kernelwright.HyperKernelSVR` take for ``solver`` and ``learn``.
"""

from kernelwright.hyper.fitting import BasisPlan, PairFit, fit_pairs
from kernelwright.hyper.learned import LearnedKernel
from kernelwright.hyper.learning import HeldOutMetric
from kernelwright.hyper.ridge import PairRidge
from kernelwright.hyper.solvers import AutoPairs, ExactPairs, LandmarkPairs, Midpoints, Partition
from kernelwright.hyper.svr import PairSVR
from kernelwright.hyper.targets import PairProblem

__all__ = [
    "AutoPairs",
    "BasisPlan",
    "ExactPairs",
    "HeldOutMetric",
    "LandmarkPairs",
    "LearnedKernel",
    "Midpoints",
    "PairFit",
    "PairProblem",
    "PairRidge",
    "PairSVR",
    "Partition",
    "fit_pairs",
]
