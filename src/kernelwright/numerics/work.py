"""The work of a job in kernel values and cubes of matrix sizes, and its CPU seconds at a measured pace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from kernelwright.numerics.linalg import factorise

__all__ = ["Work", "WorkPace"]


@dataclass(frozen=True)
class Work:
    """Kernel values, and cubic work: one cube is the factor of an n x n matrix and the diagonal of its inverse.

    Examples
    --------
    >>> from kernelwright.numerics.work import WorkPace, Work
    >>> (Work.of_matrix(1000) + Work(values=1e6)).times(2).seconds(WorkPace(value=1e-6, cube=1e-9))
    6.0
    """

    values: float = 0.0
    cubes: float = 0.0

    @classmethod
    def of_matrix(cls, n: float) -> Work:
        """Return the work of a symmetric kernel matrix of n rows, its factor and the diagonal of its inverse."""
        return cls(n**2, n**3)

    def __add__(self, other: Work) -> Work:
        return Work(self.values + other.values, self.cubes + other.cubes)

    def times(self, count: float) -> Work:
        """Return the work done several times."""
        return Work(count * self.values, count * self.cubes)

    def seconds(self, pace: WorkPace) -> float:
        """Return the CPU seconds that it takes."""
        return self.values * pace.value + self.cubes * pace.cube


@dataclass(frozen=True)
class WorkPace:
    """CPU seconds for one kernel value of a symmetric matrix, and for one unit of a cube."""

    value: float
    cube: float

    @classmethod
    def measured(cls, matrix: Callable[[], Tensor]) -> WorkPace:
        """Time a kernel matrix and its factor on this thread, each at its second run: the first may load something."""
        for _ in range(2):
            started = time.thread_time()
            K = matrix()
            made = time.thread_time()
            factorise(K, float(K.diagonal().abs().mean()) or 1.0).inverse_diagonal()
            ended = time.thread_time()
        n = len(K)
        return cls((made - started) / n**2, (ended - made) / n**3)
