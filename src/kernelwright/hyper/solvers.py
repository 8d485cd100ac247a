"""Representations of a learned kernel: its basis functions of pairs, and the number of pairs it is learned from.

Strings are short forms of these objects: "auto", "exact", "nystroem", "midpoint" and "partitioned".
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from kernelwright.hyper.bases import Basis, MidpointBasis, PairBasis, all_pairs_of, landmarks_among
from kernelwright.hyper.kernels import HyperKernel, PointPairs
from kernelwright.hyper.moments import MOMENT_BLOCK
from kernelwright.hyper.pairs import Pairs, number_of_pairs, some_pairs, unique_pairs
from kernelwright.hyper.targets import Target
from kernelwright.numerics.memory import check_memory
from kernelwright.storage.saved import saved

__all__ = [
    "SOLVERS",
    "AutoPairs",
    "ExactPairs",
    "LandmarkPairs",
    "Midpoints",
    "PairSolver",
    "Partition",
    "as_solver",
    "divided",
]

EXACT_UP_TO = 60  # points: 1830 pairs
CENTRES, LANDMARKS = 20, 30  # defaults: centres of the midpoint form, and points whose pairs are landmarks


class PairSolver(BaseEstimator):
    """A representation of a learned kernel. Its parameters are read at each fit and never changed."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    word: ClassVar[str]
    exact: ClassVar[bool] = False  # whether every known pair is a basis function
    refines: ClassVar[bool] = False  # whether refine="auto" may smooth the residual

    def settled(self, hyperkernel: HyperKernel, n_points: int, *, exact_first: bool) -> PairSolver:
        """Return the solver to use for ``n_points``: itself, unless the choice is automatic."""
        return self

    def rule(self) -> str:
        """Return the rule by which landmarks are chosen among the points."""
        return "kmeans"

    def centres(self, X: Tensor, seed: int) -> Tensor | None:
        """Return the centres that all parts of a partition share, or None."""
        return None

    def pairs(self, target: Target, X: Tensor, usual: int, random: torch.Generator, *, matrices: int) -> Pairs:
        """Return the pairs to learn from.

        ``usual`` is the default maximum number of pairs. ``matrices`` is how many matrices of all pairs by all pairs an
        exact solution holds at once.
        """
        raise NotImplementedError

    def basis(self, hyperkernel: HyperKernel, X: Tensor, pairs: Pairs, centres: Tensor | None, seed: int) -> Basis:
        """Return the functions that the kernel is a combination of."""
        raise NotImplementedError


@saved("exact-pairs")
class ExactPairs(PairSolver):
    """Eq. (6) of [Liu2021]_ on all pairs: exact, for up to about 100 points. Its short form is "exact".

    Examples
    --------
    >>> from kernelwright.hyper import ExactPairs
    >>> round(ExactPairs().bytes(100) / 1e6)  # megabytes for 100 points
    816
    """

    word, exact = "exact", True

    def bytes(self, n_points: int, matrices: int = 4) -> float:
        """Estimate the memory of ``matrices`` matrices of all pairs by all pairs."""
        return matrices * 8.0 * number_of_pairs(n_points) ** 2

    def pairs(self, target: Target, X: Tensor, usual: int, random: torch.Generator, *, matrices: int) -> Pairs:
        check_memory(
            self.bytes(len(target), matrices),
            f"The exact solution for {len(target)} points ({number_of_pairs(len(target))} pairs)",
            "Use solver='midpoint' (Gaussian hyper-kernels), 'nystroem', or solver=Partition(...).",
        )
        return _some(unique_pairs(target))

    def basis(self, hyperkernel: HyperKernel, X: Tensor, pairs: Pairs, centres: Tensor | None, seed: int) -> Basis:
        return PairBasis(hyperkernel, PointPairs(X[pairs.first], X[pairs.second]))


class SampledPairs(PairSolver):
    """The base of the solvers with landmarks: their number, and a sample of pairs."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n": [Interval(Integral, 1, None, closed="left"), None],
        "choose": [StrOptions({"uniform", "leverage", "kmeans"})],
        "n_pairs": [Interval(Integral, 1, None, closed="left"), StrOptions({"all"}), None],
    }

    def __init__(self, n: int | None = None, *, choose: str = "kmeans", n_pairs: int | str | None = None) -> None:
        self.n = n
        self.choose = choose
        self.n_pairs = n_pairs

    def rule(self) -> str:
        return self.choose

    def bytes(self, n_functions: int) -> float:
        """Estimate the memory of a solution with ``n_functions`` basis functions.

        It holds moments of each two folds and copies of some, and a block of values with its temporary matrices.
        """
        return 16 * 8.0 * n_functions**2 + 6 * 8.0 * MOMENT_BLOCK

    def pairs(self, target: Target, X: Tensor, usual: int, random: torch.Generator, *, matrices: int) -> Pairs:
        n_all = number_of_pairs(len(target))
        most = usual if self.n_pairs is None else n_all if self.n_pairs == "all" else int(self.n_pairs)
        check_memory(
            12 * 8.0 * min(n_all, most),
            f"A list of {min(n_all, most)} pairs",
            f"Learn from fewer pairs, for example solver={type(self).__name__}(n_pairs=100_000), or use n_pairs=None.",
        )
        return _some(some_pairs(target, X, most, random))

    def checked(self, basis: Basis) -> Basis:
        """Return the basis, or raise an error if a solution with so many functions does not fit in memory."""
        check_memory(
            self.bytes(len(basis)),
            f"A solution with {len(basis)} functions of pairs",
            f"Use fewer landmarks: solver={type(self).__name__}(n=...).",
        )
        return basis


@saved("landmark-pairs")
class LandmarkPairs(SampledPairs):
    """Nystroem, Eq. (9) of [Liu2021]_: one function for each pair of landmarks. Its short form is "nystroem".

    Parameters
    ----------
    n : int or None, default=None
        Number of landmarks. ``None`` is 30, which make 465 pairs.
    choose : {"kmeans", "uniform", "leverage"}, default="kmeans"
        How they are chosen among the points.
    n_pairs : int, "all" or None, default=None
        Number of pairs to learn from. ``None`` is all pairs up to 100,000 (20,000 for support vectors), and beyond
        that a sample with the diagonal and near neighbours.

    Examples
    --------
    >>> from kernelwright import HyperKernelRidge, hyper
    >>> HyperKernelRidge(solver=hyper.LandmarkPairs(12)).set_params(solver__n=8).solver
    LandmarkPairs(n=8)
    """

    word = "nystroem"

    def basis(self, hyperkernel: HyperKernel, X: Tensor, pairs: Pairs, centres: Tensor | None, seed: int) -> Basis:
        chosen = landmarks_among(X, self.n or LANDMARKS, self.choose, seed) if centres is None else centres
        return self.checked(all_pairs_of(hyperkernel, chosen))


@saved("midpoints")
class Midpoints(SampledPairs):
    """The separable form of Gaussian hyper-kernels: much faster than landmark pairs. Its short form is "midpoint".

    Parameters
    ----------
    n : int or None, default=None
        Number of centres. ``None`` is 20.
    choose : {"kmeans", "uniform", "leverage"}, default="kmeans"
        How they are chosen among the points.
    n_pairs : int, "all" or None, default=None
        Number of pairs to learn from. ``None`` is all pairs up to 100,000 (20,000 for support vectors), and beyond
        that a sample with the diagonal and near neighbours. With labels and wide hyper-kernels, "all" takes time
        linear in the number of points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import HyperKernelRidge, hyper
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = HyperKernelRidge(solver=hyper.Midpoints(8), random_state=0).fit(X, X[:, 0] > 0)
    >>> len(model.kernel_.basis)  # eight centres, eight widths
    64
    """

    word = "midpoint"

    def centres(self, X: Tensor, seed: int) -> Tensor:
        return landmarks_among(X, self.n or CENTRES, self.choose, seed)

    def basis(self, hyperkernel: HyperKernel, X: Tensor, pairs: Pairs, centres: Tensor | None, seed: int) -> Basis:
        return self.functions(hyperkernel, self.centres(X, seed) if centres is None else centres)

    def functions(self, hyperkernel: HyperKernel, centres: Tensor) -> MidpointBasis:
        """Return the functions of given centres."""
        basis = MidpointBasis(hyperkernel, centres)
        self.checked(basis)
        return basis


@saved("auto-pairs")
class AutoPairs(SampledPairs):
    """Midpoints for Gaussian hyper-kernels; for others exact up to 60 points, then landmarks. Its short form is "auto".

    Support vector regression is exact up to 60 points with any hyper-kernel.

    Parameters
    ----------
    n, choose, n_pairs
        As in :class:`Midpoints` or :class:`LandmarkPairs`, whichever is chosen.

    Examples
    --------
    >>> from kernelwright import hyper
    >>> hyper.AutoPairs(n_pairs=5000)
    AutoPairs(n_pairs=5000)
    """

    word, refines = "auto", True

    def settled(self, hyperkernel: HyperKernel, n_points: int, *, exact_first: bool) -> PairSolver:
        gaussian = hyperkernel.widths() is not None
        if n_points <= EXACT_UP_TO and (exact_first or not gaussian):
            return ExactPairs()
        make = Midpoints if gaussian else LandmarkPairs
        return make(self.n, choose=self.choose, n_pairs=self.n_pairs)


@saved("pair-partition")
class Partition(PairSolver):
    """Algorithm 1 of [Liu2021]_, divide and conquer: learn on random parts, average. Its short form is "partitioned".

    Parameters
    ----------
    n : int, default=4
        Number of parts.
    solver : str or solver object, default="auto"
        The solver of each part. Each part has its own landmarks, as in Algorithm 1. The centres of
        :class:`Midpoints` are shared, so that the mean is as fast to evaluate as the kernel of one part.
    n_jobs : int or None, default=None
        Number of parts solved at the same time, by any joblib backend.

    Examples
    --------
    >>> from kernelwright import HyperKernelRidge, hyper
    >>> model = HyperKernelRidge(solver=hyper.Partition(10, hyper.Midpoints(30), n_jobs=2))
    >>> model.set_params(solver__solver__n=40).get_params()["solver__solver__n"]
    40
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"auto", "exact", "nystroem", "midpoint"}), ExactPairs, SampledPairs],
        "n_jobs": [Integral, None],
    }
    word = "partitioned"

    def __init__(self, n: int = 4, solver: str | PairSolver = "auto", *, n_jobs: int | None = None) -> None:
        self.n = n
        self.solver = solver
        self.n_jobs = n_jobs


SOLVERS: dict[str, type[PairSolver]] = {
    made.word: made for made in (AutoPairs, ExactPairs, LandmarkPairs, Midpoints, Partition)
}


def as_solver(solver: str | PairSolver) -> PairSolver:
    """Return the object that a short form stands for, with checked parameters."""
    found = SOLVERS[solver]() if isinstance(solver, str) else solver
    found._validate_params()
    return found


def divided(solver: PairSolver) -> tuple[Partition, PairSolver]:
    """Return how the points are divided (one part by default), and the solver of each part."""
    partition = solver if isinstance(solver, Partition) else Partition(1, solver)
    return partition, as_solver(partition.solver)


def _some(pairs: Pairs) -> Pairs:
    if len(pairs) == 0:
        raise ValueError(
            "One part of the points has no pair with a known similarity. Use fewer parts: solver=Partition(n, ...)."
        )
    return pairs
