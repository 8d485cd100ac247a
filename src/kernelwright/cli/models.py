"""Read, check and write model files, and write reports on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kernelwright
from kernelwright.cli.screen import say
from kernelwright.persistence import check_model_file
from kernelwright.tables.writing import check_output, write_bytes

__all__ = ["check_model", "check_model_output", "load_model", "write_report"]


def check_model(path: Path) -> None:
    """Raise ValueError if a file is not a model, before torch and scikit-learn are imported."""
    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    check_model_file(path)


def check_model_output(path: Path, *others: str | Path | None) -> None:
    """Raise ValueError if a path is not a regular file, or is another file that the command reads or writes."""
    if str(path) == "-":
        raise ValueError("A model cannot be written to standard output. Give the name of a file.")
    check_output(path, *others)
    if path.exists() and not path.is_file():
        raise ValueError(f"Cannot write to {path}: it is not a regular file.")


def load_model(path: Path, *makers: str) -> Any:
    """Load a model that one of the given commands made: "fit", "learn-kernel"."""
    found = kernelwright.load(path)
    from kernelwright.tables import KernelModel, TabularModel

    maker = {TabularModel: "fit", KernelModel: "learn-kernel"}.get(type(found))
    if maker not in makers:
        what = f"a model of kernelwright {maker}" if maker else f"a {type(found).__name__}"
        raise ValueError(f"{path} holds {what}, but this command needs one of kernelwright {makers[0]}.")
    return found


def write_report(report: Path, model: Any, saved: Path, *, quiet: bool = False) -> None:
    """Write a report on a saved model; if this fails, say that the model itself was saved."""
    from kernelwright.reports import model_report

    try:
        write_bytes(report, model_report(model).encode())
    except (OSError, ValueError, MemoryError) as error:
        why = f"{error.strerror}." if isinstance(error, OSError) and error.strerror else str(error)
        raise ValueError(
            f"The model was written to {saved}, but the report could not be written to {report}: {why} To "
            f"try again: kernelwright report {saved} -o {report}"
        ) from error
    if not quiet:
        say(f"Report: {report}")
