"""Solvers for the embedding of all rows: the values of ``solver=``.

==============  ===================  =======================  =======================================
word            object               cost                     what it is
==============  ===================  =======================  =======================================
``"exact"``     :class:`Exact`       n^3 once, n^2 memory     the dual form, up to 8000 rows or so
``"tree"``      :class:`Tree`        n m^2                    leaves of m rows, each exact
``"nystroem"``  :class:`Landmarks`   n M a step, few steps    the span of M landmarks
``"fourier"``   :class:`Fourier`     n p^2 once, p^2 memory   random Fourier features
``"herding"``   :class:`Herding`     M^3 once                 a weighted subset of M rows
``"auto"``      :class:`Auto`                                 exact, landmarks or a tree, by the rows
==============  ===================  =======================  =======================================
"""

from typing import Any

from kernelwright.inputs.options import option_of
from kernelwright.solvers.automatic import EXACT_UP_TO, Auto
from kernelwright.solvers.base import Solver
from kernelwright.solvers.exact import Exact
from kernelwright.solvers.explicit import Fourier
from kernelwright.solvers.herding import Herding
from kernelwright.solvers.landmarks import Landmarks
from kernelwright.solvers.solution import Solution
from kernelwright.solvers.tree import Tree

__all__ = [
    "EXACT_UP_TO",
    "SOLVERS",
    "Auto",
    "Exact",
    "Fourier",
    "Herding",
    "Landmarks",
    "Solution",
    "Solver",
    "Tree",
    "solver_of",
]

SOLVERS: dict[str, type[Solver]] = {each.word: each for each in (Auto, Exact, Tree, Landmarks, Fourier, Herding)}


def solver_of(given: Any, owner: str) -> Solver:
    """Return the solver behind a ``solver`` argument: a word or an object."""
    return option_of(given, SOLVERS, "solver", owner, kind=Solver)


def __dir__() -> list[str]:
    return __all__
