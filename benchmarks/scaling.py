"""CPU seconds against the number of rows: nested samples of covtype, each method until it exceeds the time limit."""

from collections.abc import Iterable

from benchmarks.peers import METHODS
from benchmarks.suite import Chain, Task, covtype_of

SIZES = (500, 1000, 2000, 5000, 10_000, 50_000, 100_000)
MOST_SECONDS = 100.0
TEST_ROWS = 5000


def chains(quick: bool, methods: Iterable[str] | None = None) -> list[Chain]:
    """Make a chain for each method, fewest rows first: a method that fails at one size is not tried at the next."""
    names = [name for name in METHODS if (METHODS[name].quick or not quick) and (not methods or name in methods)]
    sizes = [covtype_of(n, MOST_SECONDS, TEST_ROWS) for n in (SIZES[:3] if quick else SIZES)]
    return [[Task(size, 0, name) for size in sizes] for name in names]
