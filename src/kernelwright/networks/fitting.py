"""The steps of a network's fit, each from record to record: start -> split -> train -> solve -> calibrate."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from kernelwright.embedding.primal import Moments
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.blocks import Block, Chunks
from kernelwright.inputs.dataset import Dataset
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.inputs.targets import ClassTargets, Targets
from kernelwright.kernels import Kernel
from kernelwright.kernels.coordinates import coordinates_of
from kernelwright.learning import HeldOut, Rademacher, Step
from kernelwright.learning.loop import TrainingResult
from kernelwright.networks.checkpoint import Checkpoint
from kernelwright.networks.fitted import FittedNetwork, InputReader
from kernelwright.networks.goals import batch_objective
from kernelwright.networks.heads import BatchObjective, EmbeddingNetwork, HeadSolution, KernelHead, LinearHead
from kernelwright.networks.modules import instance_of, known_bound
from kernelwright.networks.options import JUDGED_ROWS, MLP, HeadOptions, Training
from kernelwright.networks.training import Plan, train_network
from kernelwright.numerics.linalg import finite
from kernelwright.numerics.memory import check_memory
from kernelwright.objectives.losses import complexity_multiplier
from kernelwright.solvers import Exact
from kernelwright.uncertainty.links import FittedLink, LeftOutOutputs, fit_link

__all__ = [
    "NetworkPlan",
    "NetworkSplit",
    "SolvedNetwork",
    "StartedNetwork",
    "TrainedNetwork",
    "calibrate",
    "checkpoint_for",
    "read_rows",
    "solve",
    "split",
    "start",
    "train",
]

START_RIDGE = 0.01
LEARNED_ROWS = 2000  # largest number of rows whose kernel matrices are held during training


@dataclass(frozen=True)
class NetworkPlan:
    """The settings of a fit, with short forms replaced by objects."""

    module: nn.Module | type[nn.Module] | MLP
    kernel: Kernel | None  # on the features; None is the linear kernel
    method: Rademacher | HeldOut | None  # None: depends on the number of rows in a mini-batch
    head: HeadOptions
    training: Training
    scale: str | None
    flat: bool  # whether the network is fully connected and takes flat rows
    random_state: Any
    warm_ridge: float | None = None  # ridge of the earlier fit that module and kernel come from
    callback: Callable[[Step], Any] | None = None

    @property
    def ends_in_double(self) -> bool:
        """Whether the trained network is used in double precision."""
        precision = self.training.precision
        return precision == "double" or (precision == "auto" and self.flat)


@dataclass(frozen=True)
class StartedNetwork:
    """A network before training."""

    network: EmbeddingNetwork
    n_features: int  # without the intercept

    @property
    def width(self) -> int:
        """The number of features with the intercept."""
        return self.n_features + int(self.network.head.intercept)


@dataclass(frozen=True)
class NetworkSplit:
    """Indices of the rows that the network learns from, and of the rows that evaluate the final embedding."""

    learned: Tensor
    judged: Tensor
    held_out: bool  # whether the evaluated rows are kept from training


@dataclass(frozen=True)
class TrainedNetwork:
    """A network after training, its objective, and the training history."""

    network: EmbeddingNetwork
    n_features: int
    goal: BatchObjective
    plan: Plan
    result: TrainingResult


@dataclass(frozen=True)
class SolvedNetwork:
    """A network with the embedding of all rows, and its outputs at the evaluated rows."""

    fitted: FittedNetwork
    head: HeadSolution
    judged: TrainingSet
    n_rows: float  # number of embedded rows, or of groups


def read_rows(rows: Dataset, plan: NetworkPlan, targets: Targets) -> tuple[InputReader, TrainingSet]:
    """Scale the rows; return a reader for new rows, and the rows as inputs of the network."""
    if rows.layout is None:
        scaler = fit_scaler(plan.scale, rows.X.reshape(len(rows), -1), rows.weights)
    else:
        scaler = coordinates_of(rows.layout, rows.X, counts=rows.counts)
    reader = InputReader(scaler, rows.X.shape[1:], plan.flat)
    counts, groups = (None if each is None else torch.from_numpy(each) for each in (rows.counts, rows.groups))
    encoded, weights = targets.encode(rows.y), torch.from_numpy(rows.weights)
    return reader, TrainingSet.of(reader(rows.X), encoded, weights=weights, counts=counts, groups=groups)


def start(plan: NetworkPlan, data: TrainingSet) -> StartedNetwork:
    """Build the network, or copy the given one, and add a head."""
    given: Any = plan.module
    n_inputs = data.points.shape[1]
    if isinstance(given, type):
        module = instance_of(given, n_inputs)
    else:
        module = given.build(n_inputs) if isinstance(given, MLP) else copy.deepcopy(given)
    warm, asked = plan.warm_ridge is not None, plan.head
    ridge = START_RIDGE if isinstance(asked.ridge, str) else float(asked.ridge)
    ridge = ridge if plan.warm_ridge is None else plan.warm_ridge
    if plan.kernel is None:
        head: LinearHead | KernelHead = LinearHead(ridge, intercept=asked.intercept)
    else:
        _refuse_if_too_large(len(data))
        head = KernelHead(copy.deepcopy(plan.kernel), ridge, intercept=asked.intercept)
    network = EmbeddingNetwork(module.float(), head, plan.training.torch_device())
    some = finite(network.features(data.points[:JUDGED_ROWS]))
    if isinstance(head, KernelHead) and not warm:
        head.kernel.prepare_(some, data.weights[:JUDGED_ROWS])
    elif isinstance(asked.ridge, str) and not warm:
        head.ridge = min(max(START_RIDGE * float(some.square().mean()), 1e-8), 1e3)
    return StartedNetwork(network, some.shape[1])


def _refuse_if_too_large(n_rows: int) -> None:
    learning = 7 * 8.0 * min(n_rows, LEARNED_ROWS) ** 2  # a kernel matrix, its inverse, gradients and copies
    check_memory(
        max(learning, Exact().n_bytes(n_rows)),
        f"A kernel on the features of {n_rows} distinct rows",
        "Use kernel=None, which needs only sums over the rows, or fit on a sample of the rows.",
    )


def split(data: TrainingSet, training: Training) -> NetworkSplit:
    """Hold out rows or whole groups; if none are held out, evaluate at (a sample of) all rows."""
    if data.groups is None:
        return _split_units(len(data), training)
    names, number = data.groups.unique(return_inverse=True)
    units = _split_units(len(names), training)
    learned, judged = (torch.isin(number, part).nonzero()[:, 0] for part in (units.learned, units.judged))
    return NetworkSplit(learned, judged, units.held_out)


def _split_units(n: int, training: Training) -> NetworkSplit:
    n_held = training.n_held_out(n)
    if not n_held:
        everything = torch.arange(n)
        judged = everything if n <= JUDGED_ROWS else torch.randperm(n)[:JUDGED_ROWS].sort().values
        return NetworkSplit(everything, judged, held_out=False)
    order = torch.randperm(n)
    return NetworkSplit(order[n_held:].sort().values, order[:n_held].sort().values, held_out=True)


def train(
    started: StartedNetwork, data: TrainingSet, parts: NetworkSplit, plan: NetworkPlan, checkpoint: Checkpoint | None
) -> TrainedNetwork:
    """Train the network in place, and convert it to the precision of its predictions."""
    network = started.network
    schedule = plan.training.plan(len(parts.learned), started.width)
    few_rows = plan.kernel is None and schedule.batch_size < 2 * started.width
    objective = batch_objective(plan.method, few_rows=few_rows)
    tau = complexity_multiplier(objective.complexity_weight, data.total_weight)
    goal = BatchObjective(objective, tau, _known_sup(started, plan.head))
    result = train_network(
        network,
        data.subset(parts.learned),
        goal=goal,
        plan=schedule,
        held_out=data.subset(parts.judged) if parts.held_out else None,
        callback=plan.callback,
        checkpoint=checkpoint,
    )
    if plan.ends_in_double:
        network.double()
    network.zero_grad()  # the last gradients are as large as the network itself
    network.eval()  # permanently: concurrent predictions must never see it in training mode
    return TrainedNetwork(network, started.n_features, goal, schedule, result)


def _known_sup(started: StartedNetwork, asked: HeadOptions) -> float | None:
    """Return alpha^2 if it is known without data, else None."""
    head, constant = started.network.head, float(asked.intercept)
    if asked.sup == "empirical":
        return None
    if asked.sup == "published":
        return 1.0
    if not isinstance(asked.sup, str):
        return float(asked.sup) + constant
    if isinstance(head, KernelHead):
        return float(head.sup(None))  # type: ignore[arg-type]
    return known_bound(started.network.module, started.n_features) + constant


def solve(
    trained: TrainedNetwork,
    data: TrainingSet,
    parts: NetworkSplit,
    plan: NetworkPlan,
    reader: InputReader,
    chunks: Chunks | None = None,
) -> SolvedNetwork:
    """Solve the embedding of all rows; rows in chunks are summed up where they are."""
    network, judged, n_rows = trained.network, data.subset(parts.judged), data.total_weight
    choose_ridge = plan.head.choose_ridge and parts.held_out
    if chunks is None:
        head = network.head.solve(network, data, parts.judged, choose_ridge=choose_ridge)
    else:
        assert isinstance(network.head, LinearHead)  # a kernel was refused
        moments = chunks.map_reduce(_sum_features, network, reader, ClassTargets(data.targets.shape[1]))
        n_rows = moments.total
        head = network.head.solve_sums(moments, network, judged, choose_ridge=choose_ridge)
    fitted = FittedNetwork(
        reader,
        network,
        head.coefficients,
        head.points,
        head.support,
        ridge=head.ridge,
        jitter=head.jitter,
        n_features=trained.n_features,
    )
    return SolvedNetwork(fitted, head, judged, n_rows)


def _sum_features(block: Block, network: EmbeddingNetwork, reader: InputReader, targets: ClassTargets) -> Moments:
    """Compute the moments of the features of a block of rows."""
    assert isinstance(network.head, LinearHead)
    weights = torch.from_numpy(block.weights)
    return network.head.sum_up(network, TrainingSet.of(reader(block.X), targets.encode(block.labels), weights=weights))


def calibrate(solved: SolvedNetwork, frequencies: Tensor, probability: Any) -> FittedLink:
    """Fit the link to the leave-one-out outputs at the evaluated rows."""
    how = "softmax" if isinstance(probability, str) and probability == "auto" else probability
    # They are training rows, so they always have full support.
    outputs = LeftOutOutputs(solved.head.left_out, solved.judged, torch.ones_like(solved.judged.weights))
    return fit_link(how, outputs, frequencies, n=solved.n_rows)


def checkpoint_for(plan: NetworkPlan, data: TrainingSet, seed: int) -> tuple[Checkpoint | None, int]:
    """Return the checkpoint of the run, if there is one, and the seed: that of the run in the file, if it exists."""
    if plan.training.checkpoint is None:
        return None, seed
    checkpoint = Checkpoint.of(plan.training.checkpoint, _job(plan, data), seed)
    return checkpoint, checkpoint.seed


def _job(plan: NetworkPlan, data: TrainingSet) -> str:
    """Return a fingerprint of the data, the settings and the initial weights."""
    fixed = plan.random_state if isinstance(plan.random_state, Integral) else None
    options = [{} if each is None else each.get_params() for each in (plan.method, plan.head, plan.training)]
    settings = [sorted((name, value) for name, value in some.items() if name != "checkpoint") for some in options]
    words = repr((type(plan.method).__name__, settings, plan.scale, plan.flat, plan.warm_ridge, fixed))
    digest = hashlib.blake2b(words.encode(), digest_size=16)
    for part in (plan.module, plan.kernel):
        digest.update(repr(part).encode())
        for value in part.state_dict().values() if isinstance(part, nn.Module) else ():
            digest.update(value.detach().cpu().numpy().tobytes())
    for tensor in (data.points, data.targets, data.weights, data.groups):
        digest.update(b"" if tensor is None else tensor.contiguous().numpy().data)
    return digest.hexdigest()
