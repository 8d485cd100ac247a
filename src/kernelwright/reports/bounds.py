"""Report risk bounds and leave-one-out estimates in words."""

from __future__ import annotations

from typing import Any

from kernelwright.reports.formatting import number
from kernelwright.reports.page import Block, PageTable, Paragraph
from kernelwright.uncertainty.bounds import RiskBound

__all__ = ["bound_blocks"]

ASKED = (("rademacher", "clipped"), ("leave-one-out", "clipped"), ("leave-one-out", "error"))
HSU2018 = (
    "[Hsu2018] is K. Hsu, R. Nock and F. Ramos: Hyperparameter learning for conditional kernel mean embeddings with "
    "Rademacher complexity bounds. ECML PKDD, 2018."
)


def bound_blocks(classifier: Any) -> list[Block]:
    """Show the published bound and two estimates, each with its parts and conditions."""
    blocks: list[Block] = [
        Paragraph(
            "A bound is a guarantee about new rows that needs no test rows; it is vacuous if it lies above the "
            "largest possible loss. An estimate guarantees nothing, but is usually much closer to the truth."
        )
    ]
    for method, loss in ASKED:
        blocks += _blocks_of(classifier.risk_bound(method, loss=loss))
    return [*blocks, Paragraph(HSU2018, quiet=True)]


def _blocks_of(bound: RiskBound) -> list[Block]:
    word = "Upper bound" if bound.guaranteed else "Estimate"
    rows = [(name, number(value)) for name, value in bound.parts.items()]
    if bound.vacuous:
        said = f"This is vacuous: the loss is never above {bound.largest:g} anyway."
    else:
        said = f"{'At most' if bound.guaranteed else 'About'} {number(bound.total)}."
    holds = f"Holds with probability {bound.confidence:g}." if bound.guaranteed else "No guarantee."
    return [
        PageTable(
            f"{word} by “{bound.method}” on the {bound.bounded_loss}",
            ("part", "value"),
            [*rows, ("total", number(bound.total))],
        ),
        Paragraph(f"{said} {holds} {bound.conditions}"),
    ]
