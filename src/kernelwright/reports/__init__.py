"""Draw plots and report pages, from results and public methods only."""

from kernelwright.reports.curves import (
    ConfusionDisplay,
    LearningCurveDisplay,
    RejectionCurveDisplay,
    ReliabilityDisplay,
)
from kernelwright.reports.evaluation_report import evaluation_report
from kernelwright.reports.fans import FanDisplay
from kernelwright.reports.kernel_plots import (
    KernelMatrixDisplay,
    PairScatterDisplay,
    RelevanceDisplay,
    SpectrumDisplay,
)
from kernelwright.reports.maps import DecisionProbabilityDisplay, EntropyDisplay
from kernelwright.reports.number_plots import CoverageDisplay, PITDisplay, PredictedActualDisplay
from kernelwright.reports.page import Picture, render_page, write_whole
from kernelwright.reports.report import model_report

__all__ = [
    "ConfusionDisplay",
    "CoverageDisplay",
    "DecisionProbabilityDisplay",
    "EntropyDisplay",
    "FanDisplay",
    "KernelMatrixDisplay",
    "LearningCurveDisplay",
    "PITDisplay",
    "PairScatterDisplay",
    "Picture",
    "PredictedActualDisplay",
    "RejectionCurveDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "evaluation_report",
    "model_report",
    "render_page",
    "write_whole",
]
