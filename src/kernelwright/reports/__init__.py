"""Draw plots and report pages, from results and public methods only."""

from kernelwright.reports.curves import (
    ConfusionDisplay,
    LearningCurveDisplay,
    RejectionCurveDisplay,
    ReliabilityDisplay,
)
from kernelwright.reports.kernel_plots import (
    KernelMatrixDisplay,
    PairScatterDisplay,
    RelevanceDisplay,
    SpectrumDisplay,
)
from kernelwright.reports.maps import DecisionProbabilityDisplay, EntropyDisplay
from kernelwright.reports.page import Picture, render_page, write_whole
from kernelwright.reports.report import model_report

__all__ = [
    "ConfusionDisplay",
    "DecisionProbabilityDisplay",
    "EntropyDisplay",
    "KernelMatrixDisplay",
    "LearningCurveDisplay",
    "PairScatterDisplay",
    "Picture",
    "RejectionCurveDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "model_report",
    "render_page",
    "write_whole",
]
