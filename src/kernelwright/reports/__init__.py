"""Pictures and pages. They read results, never the insides of estimators."""

from kernelwright.reports.page import Picture, render_page, write_whole
from kernelwright.reports.plots import DecisionProbabilityDisplay, LearningCurveDisplay

__all__ = ["DecisionProbabilityDisplay", "LearningCurveDisplay", "Picture", "render_page", "write_whole"]
