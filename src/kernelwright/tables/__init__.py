"""Read tables from users' files, prepare them for a model, and write them.

Names are imported when they are first used: reading a file, or rejecting it, needs neither torch nor scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelwright.inputs.frames.table import Table, as_table
from kernelwright.tables.reading import read_table, scan_table
from kernelwright.tables.writing import check_output, write_bytes, write_table

if TYPE_CHECKING:
    from kernelwright.inputs.frames.columns import Column
    from kernelwright.inputs.frames.describing import describe_columns
    from kernelwright.inputs.frames.notation import Notation
    from kernelwright.inputs.frames.preparing import Finding, prepare
    from kernelwright.tables.drift import Drift, TargetDrift, find_drift
    from kernelwright.tables.examples import ExampleRows, telling_rows
    from kernelwright.tables.kernel_model import KernelEvaluation, KernelModel, held_out_error
    from kernelwright.tables.leaks import Leak, find_leaks, find_number_leaks
    from kernelwright.tables.model import NumberAnswers, TabularModel
    from kernelwright.tables.quantities import TrainingNumbers
    from kernelwright.tables.similarities import Similarities, read_similarities
    from kernelwright.tables.training import TrainingTable

__all__ = [
    "Column",
    "Drift",
    "ExampleRows",
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
    "telling_rows",
    "write_bytes",
    "write_table",
]

_FRAMES = "kernelwright.inputs.frames"
_MODULES = {
    "Column": f"{_FRAMES}.columns",
    "Drift": "drift",
    "ExampleRows": "examples",
    "Finding": f"{_FRAMES}.preparing",
    "KernelEvaluation": "kernel_model",
    "KernelModel": "kernel_model",
    "Leak": "leaks",
    "Notation": f"{_FRAMES}.notation",
    "NumberAnswers": "model",
    "Similarities": "similarities",
    "TabularModel": "model",
    "TargetDrift": "drift",
    "TrainingNumbers": "quantities",
    "TrainingTable": "training",
    "describe_columns": f"{_FRAMES}.describing",
    "find_drift": "drift",
    "find_leaks": "leaks",
    "find_number_leaks": "leaks",
    "held_out_error": "kernel_model",
    "prepare": f"{_FRAMES}.preparing",
    "read_similarities": "similarities",
    "telling_rows": "examples",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    where = _MODULES[name]
    found = globals()[name] = getattr(import_module(where if "." in where else f"{__name__}.{where}"), name)
    return found


def __dir__() -> list[str]:
    return list(__all__)
