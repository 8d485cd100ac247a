"""Make the report on a model, of whichever kind."""

from __future__ import annotations

from kernelwright.estimators import EmbeddingRegressor
from kernelwright.reports.classifier_report import classifier_page
from kernelwright.reports.kernel_report import kernel_page
from kernelwright.reports.number_report import number_page
from kernelwright.tables import KernelModel, TabularModel

__all__ = ["model_report"]


def model_report(model: TabularModel | KernelModel) -> str:
    """Return a report on a model: one HTML page that loads nothing, and whose only script is a panel.

    It uses only records and public methods. A sentence replaces any section that cannot be made for the model.

    Parameters
    ----------
    model : TabularModel or KernelModel
        A model of :mod:`kernelwright.tables`, of classes or of numbers.

    Returns
    -------
    str
        The HTML of the page.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright.reports import model_report
    >>> from kernelwright.tables import TabularModel, TrainingTable, as_table
    >>> bunch = load_iris(as_frame=True)
    >>> frame = bunch.data.iloc[::3, :2].assign(species=bunch.target_names[bunch.target[::3]])
    >>> page = model_report(TabularModel.fit(TrainingTable.of(as_table(frame), "species")))
    >>> "<h1>Classifier of species</h1>" in page
    True
    """
    if isinstance(model, TabularModel):
        page = number_page if isinstance(model.pipeline[-1], EmbeddingRegressor) else classifier_page
        return page(model).render()
    if isinstance(model, KernelModel):
        return kernel_page(model).render()
    raise TypeError(f"A report needs a TabularModel or a KernelModel. Got {type(model).__name__} instead.")
