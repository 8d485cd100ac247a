"""All experiments by name."""

from __future__ import annotations

from kernelwright.research.experiments import (
    hsu_figure1,
    hsu_figure2,
    hsu_network,
    hsu_network_full,
    hsu_table1,
    hsu_table1_order,
    hsu_theory,
    learning_rate,
    liu_dimension,
    liu_figure2,
    liu_figure3,
    liu_table1,
    liu_table2,
    liu_table3,
)
from kernelwright.research.experiments.runner import Experiment

__all__ = ["EXPERIMENTS", "find"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        hsu_figure1.EXPERIMENT,
        hsu_table1.EXPERIMENT,
        hsu_table1_order.EXPERIMENT,
        hsu_theory.EXPERIMENT,
        hsu_figure2.BY_SIZE,
        hsu_figure2.PIXELS,
        hsu_network.EXPERIMENT,
        hsu_network_full.EXPERIMENT,
        liu_table1.EXPERIMENT,
        liu_table2.EXPERIMENT,
        liu_figure2.EXPERIMENT,
        liu_table3.EXPERIMENT,
        liu_figure3.EXPERIMENT,
        learning_rate.EXPERIMENT,
        liu_dimension.EXPERIMENT,
    )
}


# Shorter names.
ALIASES = {
    "table1": "hsu-table1",
    "networks": "hsu-table1",
    "mnist-network": "hsu-figure2-network",
    "mnist-pixels": "hsu-figure2-size",
}


def find(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all experiments."""
    if name == "all":
        return [experiment for experiment in EXPERIMENTS.values() if not experiment.by_name_only]
    name = ALIASES.get(name, name)
    if name not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {name!r}. Known: all, {', '.join(EXPERIMENTS)}.")
    return [EXPERIMENTS[name]]
