"""Logging of the progress of learning."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kernelwright.learning import Step

__all__ = ["logger", "progress", "with_lines"]

logger = logging.getLogger("kernelwright")


@contextmanager
def progress(verbose: int) -> Iterator[None]:
    """Show the library's log inside the block if ``verbose`` is set: on standard error, unless it has a handler."""
    if not verbose:
        yield
        return
    level, handler = logger.level, None if logger.hasHandlers() else logging.StreamHandler()
    logger.setLevel(logging.INFO)
    if handler is not None:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)


def with_lines(callback: Callable[[Step], Any] | None, every: int) -> Callable[[Step], Any] | None:
    """Return the user's callback, with a log line before it every ``every`` steps."""
    if not every:
        return callback
    steps = itertools.count()

    def report(step: Step) -> None:
        number = next(steps)
        if number % int(every) == 0:
            logger.info(
                "step %4d  objective %.5f  loss %.5f  complexity %.4g",
                number,
                step.objective,
                step.loss,
                step.complexity,
            )
        if callback is not None:
            callback(step)

    return report
