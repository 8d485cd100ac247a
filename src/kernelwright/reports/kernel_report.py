"""The report on a learned kernel: how close it is to the given similarities."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.numerics.linalg import eigen
from kernelwright.reports.formatting import count_of, interval, name_of_table, number, percent
from kernelwright.reports.kernel_plots import KernelMatrixDisplay, PairScatterDisplay, SpectrumDisplay
from kernelwright.reports.page import Block, Gallery, Page, PageTable, Paragraph, Picture, Tile, Tiles
from kernelwright.reports.sections import (
    SectionLeftOut,
    columns_section,
    note_blocks,
    section_or_sentence,
    settings_section,
)
from kernelwright.tables import KernelEvaluation, KernelModel

__all__ = ["kernel_page"]

NOT_MEASURED = "The error on new objects was not measured: no objects were held out, or there were too few of them."


def kernel_page(model: KernelModel) -> Page:
    """Make the report page of a learned kernel."""
    sections = [
        ("Error on new objects", lambda: quality(model)),
        ("Given and learned matrix", lambda: matrix(model)),
        ("Columns", lambda: columns_section(model.columns)),
        ("Settings and versions", lambda: settings_section(_settings(model), model.versions)),
    ]
    made = [section_or_sentence(title, blocks) for title, blocks in sections]
    return Page("Learned kernel", summary(model), made)


def summary(model: KernelModel) -> list[Block]:
    """Describe the model in plain words."""
    blocks: list[Block] = [
        Paragraph(
            f"A similarity function of {count_of(len(model.used), 'column')} of {name_of_table(model.settings)}, "
            f"learned from the similarities of {count_of(len(model.objects), 'object')}. It can be applied to "
            "objects that are not in the table."
        )
    ]
    found = model.evaluation
    if found is None:
        return [*blocks, Paragraph(NOT_MEASURED), *note_blocks(model.notes)]
    tiles = [
        Tile(number(found.error.value), "error on new objects", f"{interval(found.error)} (95 %)"),
        Tile(number(found.spread), "spread of the similarities", "their standard deviation"),
        Tile(f"{len(found.objects):,}", "objects held out"),
    ]
    return [*blocks, Tiles(tiles), Paragraph(judgement(found)), *note_blocks(model.notes)]


def judgement(found: KernelEvaluation) -> str:
    """Say how good the kernel is compared with simple baselines, even if it is not better."""
    words = []
    for name, score in found.rivals.items():
        if found.error.high < score.low:
            words.append(f"clearly better than {name_of(name)} ({number(score.value)})")
        elif found.error.low > score.high:
            words.append(f"clearly worse than {name_of(name)} ({number(score.value)})")
        else:
            word = "better" if found.error.value < score.value else "not better"
            words.append(f"{word} than {name_of(name)} ({number(score.value)}), with intervals that overlap")
    rest = f" This is {'; '.join(words)}." if words else ""
    return f"On similarities of held-out objects, its root mean squared error is {number(found.error.value)}.{rest}"


def name_of(rival: str) -> str:
    """Return the name of a rival for use in a sentence."""
    return {"constant": "a constant", "nearest known object": "copying from the nearest known object"}.get(rival, rival)


def quality(model: KernelModel) -> list[Block]:
    """Show errors with intervals, and held-out pairs."""
    found = model.evaluation
    if found is None:
        raise SectionLeftOut(NOT_MEASURED)
    rows = [("this kernel", found.error), *found.rivals.items()]
    table = PageTable(
        "Root mean squared error, with 95 % intervals over the held-out objects",
        ("method", "error", "interval", "relative to spread"),
        [(name, number(s.value), interval(s), _ratio(s.value, found.spread)) for name, s in rows],
    )
    drawn = PairScatterDisplay.from_predictions(found.truth, found.learned)
    pairs = len(drawn.truth)
    correlation = _correlation(drawn.truth, drawn.learned)
    return [
        Paragraph(f"Protocol: {found.protocol}."),
        table,
        Gallery(
            [
                Picture.of(
                    drawn.figure_,
                    f"Learned against true similarity of {count_of(pairs, 'pair')} with at least one held-out object. "
                    "On the dotted line they are equal.",
                    f"Scatter of {count_of(pairs, 'pair')}: root mean squared error {number(drawn.error)}, correlation "
                    f"{correlation}.",
                )
            ]
        ),
    ]


def matrix(model: KernelModel) -> list[Block]:
    """Show the given and the learned matrix of some objects, and the eigenvalues of the learned one."""
    K = model.learner.predict(model.points)
    spectrum = SpectrumDisplay.from_matrix(K)
    drawn = KernelMatrixDisplay(K, model.given).plot(order=_order(K))
    unknown = int(np.isnan(model.given).sum())
    gaps = f" Blank entries of the given matrix are unknown ({percent(unknown / model.given.size)})." if unknown else ""
    signs = spectrum.signature
    said = (
        "It has no negative eigenvalues on these objects: it is positive semidefinite there, and any kernel method can "
        "use it."
        if signs.definite
        else f"It is indefinite on these objects: {signs.negative} of {len(K)} eigenvalues are negative, "
        f"{percent(signs.negative_share)} of their absolute sum. KreinSVC and EmbeddingClassifier can use it; other "
        "methods may need a positive definite one."
    )
    return [
        Paragraph(f"The kernel between {count_of(len(K), 'known object')}. {said}"),
        Gallery(
            [
                Picture.of(
                    drawn.figure_,
                    "Given and learned similarities; rows are ordered so that similar ones are next to each "
                    f"other.{gaps}",
                    f"Two matrices of {len(K)} by {len(K)} similarities, given and learned; the learned ones run from "
                    f"{number(float(K.min()))} to {number(float(K.max()))}.",
                ),
                Picture.of(
                    spectrum.figure_,
                    "Eigenvalues of that matrix, the negative ones in another colour; logarithmic away from zero.",
                    f"Spectrum: {signs}.",
                ),
            ]
        ),
    ]


def _order(K: np.ndarray) -> np.ndarray:
    """Order rows by the leading eigenvector of the centred matrix, so that similar rows are next to each other."""
    import torch

    centred = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
    values, vectors = eigen(torch.from_numpy(centred))
    return np.argsort(vectors[:, int(values.abs().argmax())].numpy(), kind="stable")


def _ratio(error: float, spread: float) -> str:
    return f"{error / spread:.2f}" if spread > 0 else ""


def _correlation(truth: np.ndarray, learned: np.ndarray) -> str:
    if len(truth) < 2 or truth.std() == 0 or learned.std() == 0:
        return "unknown"
    return f"{np.corrcoef(truth, learned)[0, 1]:.3f}"


def _settings(model: KernelModel) -> dict[str, Any]:
    fitted = model.learner
    return {
        **model.settings,
        "names of the objects": model.identifier or "none (matched by order)",
        "kernel": repr(fitted.kernel_),
        "ridge": fitted.ridge_,
        "solver": fitted.solver_,
    }
