"""Tables of people: read from files, made ready for a model, and written again."""

from kernelwright.tables.columns import Column, Finding, describe_columns, prepare
from kernelwright.tables.drift import Drift, find_drift
from kernelwright.tables.kernel_model import KernelEvaluation, KernelModel, held_out_error
from kernelwright.tables.leaks import Leak, find_leaks
from kernelwright.tables.model import TabularModel, TrainingTable
from kernelwright.tables.notation import Notation
from kernelwright.tables.reading import read_table
from kernelwright.tables.similarities import Similarities, read_similarities
from kernelwright.tables.table import Table, as_table
from kernelwright.tables.writing import check_output, write_bytes, write_table

__all__ = [
    "Column",
    "Drift",
    "Finding",
    "KernelEvaluation",
    "KernelModel",
    "Leak",
    "Notation",
    "Similarities",
    "Table",
    "TabularModel",
    "TrainingTable",
    "as_table",
    "check_output",
    "describe_columns",
    "find_drift",
    "find_leaks",
    "held_out_error",
    "prepare",
    "read_similarities",
    "read_table",
    "write_bytes",
    "write_table",
]
