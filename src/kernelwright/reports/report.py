"""One report for each kind of model."""

from __future__ import annotations

from kernelwright.reports.classifier_report import classifier_page
from kernelwright.reports.kernel_report import kernel_page
from kernelwright.tables import KernelModel, TabularModel

__all__ = ["model_report"]


def model_report(model: TabularModel | KernelModel) -> str:
    """A page about a model: one HTML file that loads nothing from elsewhere and runs no scripts.

    It reads records and public methods only. What cannot be shown for a model is left out with a sentence.

    Parameters
    ----------
    model : TabularModel or KernelModel
        Of :mod:`kernelwright.tables`.

    Returns
    -------
    str
        The text of the page.

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
        return classifier_page(model).render()
    if isinstance(model, KernelModel):
        return kernel_page(model).render()
    raise TypeError(f"A report can be made of a TabularModel or a KernelModel. Got {type(model).__name__} instead.")
