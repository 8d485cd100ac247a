"""The convolutional networks of [Hsu2018]_ at their published size: 60,000 images, batches of 6000, 800 epochs.

Start, rate, objective and lambda are as printed. A step takes several seconds of one core, so a run takes days: each
epoch of each network is a task that continues from a checkpoint beside the results. A run that is stopped resumes from
the last complete epoch with exactly the result of one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernelwright.networks.checkpoint import Checkpoint
from kernelwright.research.experiments.claims import HSU, NOT_RUN, Claim, Verdict, mean_of
from kernelwright.research.experiments.hsu_network import FULL, HEADS, Protocol, start_of, train
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["EXPERIMENT", "SMALL", "epoch_trial", "pace"]

SMALL = replace(FULL, n_train=600, n_test=500, channels=(4, 8), n_features=32, batch_size=200, epochs=2)


def epoch_trial(folder: Path, protocol: Protocol, head: str, epoch: int) -> dict[str, float]:
    """Train one network for one more epoch, from its checkpoint; return test accuracy and CPU seconds a step."""
    start = start_of(protocol, 0)
    network = start.network(head)
    checkpoint = Checkpoint(folder / f"network-{protocol.n_train}-{head}.pt", f"{protocol} {head}", 0)
    started = time.process_time()
    trained = train(network, start, epoch, checkpoint=checkpoint)
    if trained.stopped:
        raise KeyboardInterrupt
    steps = protocol.n_train // protocol.batch_size
    seconds = time.process_time() - started
    return {"accuracy": start.accuracy(network), "CPU seconds a step": seconds / steps, "images": protocol.n_train}


def tasks(quick: bool) -> list[Task]:
    """List the epochs of both networks, in turn."""
    protocol = SMALL if quick else FULL
    return [
        Task(f"epoch {epoch}", head, 0, epoch_trial, (protocol, head, epoch), in_folder=True)
        for epoch in range(1, protocol.epochs + 1)
        for head in HEADS
    ]


def pace(results: Sequence[Result]) -> tuple[str, ...]:
    """Say how far the run is, how fast it goes and how long all of it would take."""
    said = []
    for head in HEADS:
        own = [r for r in results if r.column == head]
        accuracies = [r.value for r in own if r.measure == "accuracy"]
        if not accuracies:
            said.append(f"{head}: no epoch is done")
            continue
        seconds = mean_of([replace(r, row="") for r in own], "", head, "CPU seconds a step") or 0.0
        steps = FULL.n_train // FULL.batch_size * FULL.epochs
        said.append(
            f"{head}: {len(accuracies)} of {FULL.epochs} epochs are done, the test accuracy is {accuracies[-1]:.2f} %; "
            f"{seconds:.1f} CPU seconds a step: {steps} steps take {seconds * steps / 3600:.0f} hours of one core"
        )
    return tuple(said)


def ahead(results: Sequence[Result]) -> Verdict:
    """Judge whether the embedding is ahead after every epoch that both networks have."""
    rows = dict.fromkeys(r.row for r in results)
    pairs = [(mean_of(results, row, HEADS[0]), mean_of(results, row, HEADS[1])) for row in rows]
    known = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    if not known:
        return NOT_RUN
    if any(r.measure == "images" and r.value < FULL.n_train for r in results):
        return Verdict(None, "a small network is not judged")
    found = f"{len(known)} of {FULL.epochs} epochs, the last {known[-1][0]:.1f} against {known[-1][1]:.1f} %"
    behind = any(ours <= theirs for ours, theirs in known)
    complete = len(known) == FULL.epochs
    return Verdict(False if behind else (True if complete else None), found)


EXPERIMENT = Experiment(
    name="hsu-figure2-network-full",
    title="Figure 2 (right) of Hsu, Nock and Ramos (2018) at its published size",
    tasks=tasks,
    protocol="60,000 images, batches of 6000, 800 epochs, start, rate, lambda and objective as printed. The run can be "
    "stopped at any time; the same command goes on from the last complete epoch.",
    deviations=(
        "Not run to the end: 8000 steps of each network take most of a day of one core. `reproduce all` leaves it out.",
        "The test accuracy is that of the embedding of all training images.",
    ),
    quick="600 images, a network of a fraction of the size, two epochs.",
    findings=pace,
    claims=(
        Claim(
            f"{HSU}, figure 2 right",
            "CENs learn at a much faster rate, maintaining a higher test accuracy at all epochs (published size)",
            ahead,
        ),
    ),
    in_turn=True,
    by_name_only=True,
)
