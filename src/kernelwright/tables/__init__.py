"""Read tables from users' files, prepare them for a model, and write them.

Names are imported when they are first used: reading a file, or rejecting it, needs neither torch nor scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelwright.tables.reading import read_table, scan_table
from kernelwright.tables.table import Table, as_table
from kernelwright.tables.writing import check_output, write_bytes, write_table

if TYPE_CHECKING:
    from kernelwright.tables.columns import Column, describe_columns
    from kernelwright.tables.drift import Drift, TargetDrift, find_drift
    from kernelwright.tables.kernel_model import KernelEvaluation, KernelModel, held_out_error
    from kernelwright.tables.leaks import Leak, find_leaks, find_number_leaks
    from kernelwright.tables.model import NumberAnswers, TabularModel
    from kernelwright.tables.notation import Notation
    from kernelwright.tables.preparing import Finding, prepare
    from kernelwright.tables.quantities import TrainingNumbers
    from kernelwright.tables.similarities import Similarities, read_similarities
    from kernelwright.tables.training import TrainingTable

__all__ = [
    "Column",
    "Drift",
    "Finding",
    "KernelEvaluation",
    "KernelModel",
    "Leak",
    "Notation",
    "NumberAnswers",
    "Similarities",
    "Table",
    "TabularModel",
    "TargetDrift",
    "TrainingNumbers",
    "TrainingTable",
    "as_table",
    "check_output",
    "describe_columns",
    "find_drift",
    "find_leaks",
    "find_number_leaks",
    "held_out_error",
    "prepare",
    "read_similarities",
    "read_table",
    "scan_table",
    "write_bytes",
    "write_table",
]

_MODULES = {
    "Column": "columns",
    "Drift": "drift",
    "Finding": "preparing",
    "KernelEvaluation": "kernel_model",
    "KernelModel": "kernel_model",
    "Leak": "leaks",
    "Notation": "notation",
    "NumberAnswers": "model",
    "Similarities": "similarities",
    "TabularModel": "model",
    "TargetDrift": "drift",
    "TrainingNumbers": "quantities",
    "TrainingTable": "training",
    "describe_columns": "columns",
    "find_drift": "drift",
    "find_leaks": "leaks",
    "find_number_leaks": "leaks",
    "held_out_error": "kernel_model",
    "prepare": "preparing",
    "read_similarities": "similarities",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return list(__all__)
