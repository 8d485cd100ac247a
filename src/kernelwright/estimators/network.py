"""The scikit-learn face of embedding networks."""

from __future__ import annotations

import copy
import hashlib
import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from kernelwright.embedding.training_set import TrainingSet, smoothed_prior
from kernelwright.errors import CollapseWarning
from kernelwright.estimators.base import (
    MERGE_UP_TO,
    ProbabilityClassifier,
    by_chunks,
    refuse_if_too_large,
    warn_of_bad_fit,
    with_lines,
)
from kernelwright.estimators.batches import Rows, counted_groups, refuse_groups_of_chunks
from kernelwright.estimators.bounds import UNBOUNDED, WEIGHTED, BoundedRisk, RiskTerms
from kernelwright.inputs.arrays import seed_of, validate_data
from kernelwright.inputs.blocks import Block
from kernelwright.inputs.dask_rows import DaskRows, example_row, is_dask
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.kernels import Kernel
from kernelwright.learning.loop import Step
from kernelwright.networks.checkpoint import Checkpoint
from kernelwright.networks.heads import Bound, EmbeddingNetwork, KernelHead, LinearHead, Moments, Solution
from kernelwright.networks.modules import ACTIVATIONS, known_bound, mlp
from kernelwright.networks.training import Plan, seeded, train_network
from kernelwright.numerics.linalg import finite
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives.losses import complexity_multiplier
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.calibration import fit_map, trust_in

__all__ = ["EmbeddingNetworkClassifier"]

HOLD_OUT_FROM = 2000  # rows; with fewer, every row is needed for learning
START_RIDGE = 0.01
JUDGED_ROWS = 1000  # enough for a ridge and two numbers of a probability map


@dataclass(frozen=True)
class InputReader:
    """Checked rows as a network takes them: scaled, and flat if it is a fully connected one."""

    scaler: Any
    flat: bool

    def __call__(self, X: np.ndarray) -> Tensor:
        """Some rows."""
        if self.scaler is not None:
            X = self.scaler.transform(X.reshape(len(X), -1)).reshape(X.shape)
        if self.flat:
            X = X.reshape(len(X), -1)
        return torch.from_numpy(np.require(X, requirements=["C", "W"]))  # torch takes no read-only memory


def sum_features(block: Block, network: EmbeddingNetwork, reader: InputReader, n_classes: int) -> Moments:
    """The moments of the features of a block of rows."""
    assert isinstance(network.head, LinearHead)
    targets, weights = one_hot(block.labels, n_classes), torch.from_numpy(block.weights)
    return network.head.sum_up(network, TrainingSet.of(reader(block.X), targets, weights=weights))


@saved(
    "embedding-network-classifier",
    fields="classes_ class_weight_ class_prior_ scaler_ module_ kernel_ batch_size_ ridge_ objective_ "
    "complexity_ history_ n_iter_ points_ coefficients_ probability_map_ trust_ jitter_ _holdout "
    "_input_shape _n_features_out _network _risk_terms _support _weighted",
)
class EmbeddingNetworkClassifier(
    BoundedRisk, ClassNamePrefixFeaturesOutMixin, ProbabilityClassifier, TransformerMixin, BaseEstimator
):
    """A network whose last layer is a conditional embedding, solved in closed form [Hsu2018]_.

    The network is learned through the solution: every batch is embedded by ridge regression onto one-hot labels, and
    the gradient of its loss goes back to the network in closed form. Weights, biases and the ridge are learned
    together by ``mean loss + tau r``, ``r = alpha |W|`` (Eq. 12), where ``alpha^2 = sup k(x, x)``. The final embedding
    is solved on all training rows by a sum over batches.

    Parameters
    ----------
    module : torch.nn.Module or None, default=None
        Any network from inputs to features (it is copied, with its weights); ``None`` is a fully connected one.
    hidden : sequence of int, default=(96, 32)
        Widths of the fully connected network; the last is the number of features.
    activation : {"relu", "tanh", "silu"}, default="relu"
    kernel : Kernel or None, default=None
        ``None`` is the linear kernel on the features, by algebra of their number (Algorithm 2). Any other kernel on the
        features costs algebra of the number of rows, in every batch and at the end (Algorithm 1).
    dropout : float, default=0.0
        Share of features dropped while learning, in the fully connected network.
    intercept : bool, default=True
        A constant feature beside those of the network (one is added to a kernel).
    sup : {"empirical", "bound", "published"} or float, default="empirical"
        alpha^2. "empirical": the largest ``k(x, x)`` in the batch (a bounded kernel's own value); the complexity then
        speaks of inputs no larger than these. "bound": for all inputs, where the network ends in a bounded activation.
        A number: a bound on ``|z|^2`` that you know. "published": 1, as the published networks leave it out.
    complexity_weight : float or str, default="auto"
        tau: a number, "4e", "4e/n" ("auto"), "4e/sqrt(n)" or "1/n", with n the number of training rows.
    epsilon : float, default=0.1
        Clip of the loss. Far better than the published 1e-15, whose slopes of ``1 / f`` are spikes.
    ridge : float or "auto", default="auto"
        lambda, where its learning starts. "auto" is a hundredth of the mean square of a feature at the start (0.01
        under a kernel), so that it does not matter on which scale a network gives its features.
    choose_ridge : bool, default=True
        Where rows are held out: move the ridge in the end to where their leave-one-out outputs are best. (Rows that
        the network has learned would ask for too little.)
    validation : float or "auto", default="auto"
        Share of each batch that is scored by the embedding of the rest (Eq. 13); 0 is Eq. (12). "auto" is half where
        a batch has fewer than twice as many rows as there are features, which an embedding could fit whatever they are.
    batch_size, max_epochs : int or "auto", default="auto"
        "auto" is all rows and 300 epochs up to 1000 rows, else batches of 500 (of four rows a feature, if that is more)
        and as many epochs as give 300 steps, at least 20.
    learning_rate : float, default=0.01
        Of Adam.
    schedule : {"cosine", None}, default="cosine"
        Whether the learning rate falls to zero along half a cosine.
    max_grad_norm : float or None, default=None
        Longer gradients are shortened to this norm.
    early_stopping : float, "auto" or None, default="auto"
        Share of rows that is kept from the network to stop by, to keep the best epoch by, to choose the ridge and to
        calibrate probabilities (they do take part in the final embedding). "auto" is a tenth, at most 1000 rows, from
        2000 rows on.
    patience : int, default=10
        Epochs without a better loss at those rows after which training stops.
    probability : {"auto", "power", "softmax", "clip"}, default="auto"
        Map from raw outputs to probabilities, fitted on leave-one-out outputs ("auto" is "softmax").
    scale : {"auto", "standard", "unit", None}, default="auto"
        What is done to the inputs first: "auto" standardises for the fully connected network and leaves the inputs of
        a given one untouched.
    precision : {"auto", "single", "double"}, default="auto"
        Of the network once it is learned. Learning is in single precision and the solve in double in any case. "auto"
        is double for the fully connected network; a given one stays single, where a row alone and the same row among
        others may differ in the sixth digit.
    class_weight : dict, "balanced" or None, default=None
    warm_start : bool, default=False
        Start from the network and the ridge of the last fit.
    checkpoint : path or None, default=None
        A file that is written after every epoch. If it exists, ``fit`` goes on from it and ends exactly where a run
        without a break would have ended; the file of a run with other data or settings is refused.
    callback : callable or None, default=None
        Called with a :class:`~kernelwright.learning.optimisers.Step` after each epoch; raise ``StopIteration`` to stop.
    random_state : int, RandomState or None, default=None
        For the first weights, batches and dropout. No global random state is changed.
    device : str, default="auto"
        Where the network runs: a name that torch knows, or "auto" for CUDA where there is one and the CPU elsewhere.
    verbose : int, default=0
        If positive, a line on standard error every so many epochs.

    Attributes
    ----------
    classes_ : ndarray
    module_ : torch.nn.Module
    kernel_ : Kernel or None
    ridge_, complexity_, objective_ : float
    jitter_ : float
        What had to be added to the diagonal of the final system so that it could be factorised, with a
        :class:`~kernelwright.NumericalRepairWarning`; 0 where nothing had to be.
    history_ : list of Step
        One for each epoch, means over its batches.
    n_iter_, batch_size_ : int
    coefficients_ : ndarray
        W, a row for each feature (the last for the intercept); with a kernel V, a row for each of ``points_``.
    probability_map_ : ProbabilityMap
    n_features_in_, feature_names_in_

    Notes
    -----
    Inputs of more than two dimensions (images, sequences) reach a given ``module`` in their shape, as float32; the
    fully connected network takes them flat. Ctrl-C ends training with a warning and keeps the best epoch.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelwright import EmbeddingNetworkClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = EmbeddingNetworkClassifier(hidden=(32, 8), random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.transform(X).shape
    (178, 8)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "module": [nn.Module, None],
        "hidden": ["array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "kernel": [Kernel, None],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "intercept": ["boolean"],
        "sup": [Interval(Real, 0, None, closed="neither"), StrOptions({"empirical", "bound", "published"})],
        "complexity_weight": [
            Interval(Real, 0, None, closed="left"),
            StrOptions({"auto", "4e", "4e/n", "4e/sqrt(n)", "1/n"}),
        ],
        "epsilon": [Interval(Real, 0, 1 / math.e, closed="neither")],
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "choose_ridge": ["boolean"],
        "validation": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"cosine"}), None],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": [Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"}), None],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "probability": [StrOptions({"auto", "power", "softmax", "clip"})],
        "scale": [StrOptions({"auto", "standard", "unit"}), None],
        "precision": [StrOptions({"auto", "single", "double"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
        "callback": [callable, None],
        "random_state": ["random_state"],
        "device": [str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        module: nn.Module | None = None,
        *,
        hidden: Sequence[int] = (96, 32),
        activation: str = "relu",
        kernel: Kernel | None = None,
        dropout: float = 0.0,
        intercept: bool = True,
        sup: float | str = "empirical",
        complexity_weight: float | str = "auto",
        epsilon: float = 0.1,
        ridge: float | str = "auto",
        choose_ridge: bool = True,
        validation: float | str = "auto",
        batch_size: int | str = "auto",
        max_epochs: int | str = "auto",
        learning_rate: float = 0.01,
        schedule: str | None = "cosine",
        max_grad_norm: float | None = None,
        early_stopping: float | str | None = "auto",
        patience: int = 10,
        probability: str = "auto",
        scale: str | None = "auto",
        precision: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Step], Any] | None = None,
        random_state: Any = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.module = module
        self.hidden = hidden
        self.activation = activation
        self.kernel = kernel
        self.dropout = dropout
        self.intercept = intercept
        self.sup = sup
        self.complexity_weight = complexity_weight
        self.epsilon = epsilon
        self.ridge = ridge
        self.choose_ridge = choose_ridge
        self.validation = validation
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.max_grad_norm = max_grad_norm
        self.early_stopping = early_stopping
        self.patience = patience
        self.probability = probability
        self.scale = scale
        self.precision = precision
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> EmbeddingNetworkClassifier:
        """Train the network, solve the embedding on all rows and calibrate its probabilities.

        X and y may be Dask arrays or data frames: the network learns from at most 50,000 of their rows, and the
        embedding is summed up over all of them where they are.

        Parameters
        ----------
        X, y : array-like
        sample_weight : array-like of shape (n,), optional
            How much each row counts, relative to the others.
        groups : array-like of shape (n,), optional
            Rows that belong together (of one patient, say) are held out and left out together.
        """
        self._validate_params()
        chunks = self._check_chunks(X, y, sample_weight) if is_dask(X) else None
        if chunks is None:
            rows = self._check_training_data(X, y, sample_weight, groups)
        else:
            refuse_groups_of_chunks(groups)
            rows = self._merged(chunks.take(chunks.some_rows(np.random.default_rng(seed_of(self.random_state)))))
        self.scaler_ = self._fit_scaler(rows.X, rows.weights)
        data = rows.training_set(self._inputs(rows.X), len(self.classes_))
        checkpoint, seed = None, seed_of(self.random_state)
        if self.checkpoint is not None:
            checkpoint = Checkpoint.of(self.checkpoint, self._job(data), seed)
            seed = checkpoint.seed
        with seeded(seed), threads_for(len(data) if data.points.ndim == 2 else sys.maxsize):
            network = self._start_network(data)
            learned, judged = self._split(data)
            bound, plan = self._settings(network, len(learned), data)
            result = train_network(
                network,
                data.subset(learned),
                bound=bound,
                plan=plan,
                held_out=data.subset(judged) if len(learned) < len(data) else None,
                callback=with_lines(self.callback, self.verbose),
                checkpoint=checkpoint,
            )
            self.objective_, self.history_, self.n_iter_ = result.value, result.history, result.n_iter
            if (self.precision == "auto" and self.module is None) or self.precision == "double":
                network.double()
            choose_ridge = self.choose_ridge and len(learned) < len(data)
            if chunks is None or len(chunks) <= chunks.n_gathered:
                n_rows = data.total_weight
                solution = network.head.solve(network, data, judged, choose_ridge=choose_ridge)
            else:
                assert isinstance(network.head, LinearHead)  # a kernel was refused
                moments = chunks.map_reduce(sum_features, network, self._reader(), len(self.classes_))
                n_rows = moments.total
                some = data.subset(judged)
                solution = network.head.solve_sums(moments, network, some, choose_ridge=choose_ridge)
            self._finish(network, solution, data, judged, n_rows, bound)
        return self

    def _check_chunks(self, X: Any, y: Any, sample_weight: Any) -> DaskRows:
        """A Dask collection, its classes known, ready to be read."""
        validate_data(self, example_row(X), skip_check_array=True)  # names and number of columns
        options = {"dtype": [np.float64, np.float32], "allow_nd": True}
        chunks, self.classes_, self._weighted = DaskRows.read(X, y, sample_weight, self.class_weight, self, **options)
        self.class_weight_ = chunks.factors
        self._holdout = None
        if self.kernel is not None and len(chunks) > chunks.n_gathered:
            raise ValueError(
                f"A kernel on top of the network needs all {len(chunks)} rows in one place. Use kernel=None, whose "
                "embedding is summed up where the rows are."
            )
        return chunks

    def _check_training_data(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Rows:
        """The rows that count, equal ones merged."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], allow_nd=True)
        labels, weights, kept = self._check_labels(y, sample_weight)
        self._weighted, self._holdout = bool(np.ptp(weights) > 0), None
        return self._merged(Block(X[kept], labels, weights), counted_groups(groups, kept))

    def _merged(self, block: Block, groups: np.ndarray | None = None) -> Rows:
        """Equal rows of a table merged."""
        self._input_shape = block.X.shape[1:]
        rows = replace(Rows.of(block), groups=groups).with_mean_weight_one()
        return rows.merged()[0] if block.X.ndim == 2 and len(block.X) <= MERGE_UP_TO else rows

    def _fit_scaler(self, X: np.ndarray, weights: np.ndarray) -> Any:
        scale = ("standard" if self.module is None else None) if self.scale == "auto" else self.scale
        return fit_scaler(scale, X.reshape(len(X), -1), weights)

    def _inputs(self, X: np.ndarray) -> Tensor:
        """Checked rows as the network takes them."""
        return self._reader()(X)

    def _reader(self) -> InputReader:
        return InputReader(self.scaler_, flat=self.module is None)

    def _start_network(self, data: TrainingSet) -> EmbeddingNetwork:
        warm = self.warm_start and hasattr(self, "module_")
        if warm:
            module = copy.deepcopy(self.module_)
        elif self.module is not None:
            module = copy.deepcopy(self.module)
        else:
            hidden = [int(width) for width in self.hidden]
            if not hidden or min(hidden) < 1:
                raise ValueError(
                    "The 'hidden' parameter of EmbeddingNetworkClassifier must be one or more widths of at least 1. "
                    f"Got {self.hidden!r} instead."
                )
            module = mlp(data.points.shape[1], hidden, activation=self.activation, dropout=self.dropout)
        kernel = self.kernel_ if warm else self.kernel
        ridge = self.ridge_ if warm else START_RIDGE if self.ridge == "auto" else float(self.ridge)
        if kernel is None:
            head: LinearHead | KernelHead = LinearHead(ridge, intercept=self.intercept)
        else:
            refuse_if_too_large(len(data))
            head = KernelHead(copy.deepcopy(kernel), ridge, intercept=self.intercept)
        network = EmbeddingNetwork(module.float(), head, self._device())
        some = finite(network.features(data.points[:JUDGED_ROWS]))
        if isinstance(head, KernelHead) and not warm:
            head.kernel.prepare(some, data.weights[:JUDGED_ROWS])
        elif self.ridge == "auto" and not warm:
            head.ridge = min(max(START_RIDGE * float(some.square().mean()), 1e-8), 1e3)
        self._n_features_out = some.shape[1]
        return network

    def _device(self) -> str:
        if self.device == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                "The 'device' parameter of EmbeddingNetworkClassifier must be 'auto' or a device that torch finds "
                f"here. Got {self.device!r} instead."
            ) from error
        return self.device

    def _split(self, data: TrainingSet) -> tuple[Tensor, Tensor]:
        """Numbers of the rows the network learns from, and of those that judge the final embedding."""
        if data.groups is not None:
            return self._split_groups(data)
        share, n = self.early_stopping, len(data)
        if share == "auto":
            share = min(0.1, JUDGED_ROWS / n) if n >= HOLD_OUT_FROM else None
        if share is None:
            everything = torch.arange(n)
            return everything, everything if n <= JUDGED_ROWS else torch.randperm(n)[:JUDGED_ROWS].sort().values
        n_held = min(max(round(float(share) * n), 1), n - 1)
        order = torch.randperm(n)
        return order[n_held:].sort().values, order[:n_held].sort().values

    def _split_groups(self, data: TrainingSet) -> tuple[Tensor, Tensor]:
        """The same by whole groups."""
        _, number = data.groups.unique(return_inverse=True)  # type: ignore[union-attr]
        one_each = replace(data.subset(torch.arange(int(number.max()) + 1)), groups=None)
        learned, judged = self._split(one_each)
        some = [torch.isin(number, part).nonzero()[:, 0] for part in (learned, judged)]
        return some[0], some[1]

    def _settings(self, network: EmbeddingNetwork, n: int, data: TrainingSet) -> tuple[Bound, Plan]:
        """The objective, and the plan of n training rows."""
        width = self._n_features_out + int(self.intercept)
        batch = self.batch_size
        if batch == "auto":
            batch = n if n <= 1000 else max(500, 4 * width)
        self.batch_size_ = batch = min(int(batch), n)
        epochs = self.max_epochs
        if epochs == "auto":
            epochs = max(20, math.ceil(300 / max(1, round(n / batch))))
        scored = self.validation
        if scored == "auto":
            scored = 0.5 if self.kernel is None and batch < 2 * width else 0.0
        weight = "4e/n" if self.complexity_weight == "auto" else self.complexity_weight
        tau = complexity_multiplier(weight, data.total_weight)
        bound = Bound(tau, self.epsilon, self._known_sup(network), float(scored))
        plan = Plan(batch, int(epochs), self.learning_rate, self.schedule, self.max_grad_norm, patience=self.patience)
        return bound, plan

    def _known_sup(self, network: EmbeddingNetwork) -> float | None:
        """alpha^2 as far as it is known without data."""
        if self.sup == "empirical":
            return None
        if self.sup == "published":
            return 1.0
        if isinstance(network.head, KernelHead):
            if self.sup != "bound":
                return float(self.sup) + float(self.intercept)
            return float(network.head.sup(None))  # type: ignore[arg-type]
        known = known_bound(network.module, self._n_features_out) if self.sup == "bound" else float(self.sup)
        return known + float(self.intercept)

    def _job(self, data: TrainingSet) -> str:
        """A name for this fit that no other data, settings or first weights share."""
        aside = ("checkpoint", "callback", "verbose", "random_state", "module", "kernel")
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in aside}
        digest = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=16)
        digest.update(f"{self.random_state if isinstance(self.random_state, Integral) else None}".encode())
        start = self.module_ if self.warm_start and hasattr(self, "module_") else self.module
        for part in (start, self.kernel):
            digest.update(repr(part).encode())
            for value in () if part is None else part.state_dict().values():
                digest.update(value.detach().cpu().numpy().tobytes())
        for tensor in (data.points, data.targets, data.weights, data.groups):
            digest.update(b"" if tensor is None else tensor.contiguous().numpy().data)
        return digest.hexdigest()

    def _finish(
        self,
        network: EmbeddingNetwork,
        solution: Solution,
        data: TrainingSet,
        judged: Tensor,
        n_rows: float,
        bound: Bound,
    ) -> None:
        """Fit the probability map to the embedding of ``n_rows`` rows, and keep what prediction and bounds need."""
        some = data.subset(judged)
        name = "softmax" if self.probability == "auto" else self.probability
        frequencies = smoothed_prior(data.targets, data.weights)
        self.probability_map_ = fit_map(name, solution.left_out, some.targets, some.weights)
        self.class_prior_, self.trust_ = frequencies.numpy(), 1.0
        self._support = solution.support
        log_p = self.probability_map_.log(solution.left_out)
        if isinstance(name, str):
            self.trust_ = trust_in(log_p, some.targets, some.weights, n_rows)
        sup = solution.largest if bound.sup is None else bound.sup
        self._risk_terms = RiskTerms.of(
            (solution.fitted, some),
            (solution.left_out, log_p, some),
            n_rows=n_rows,
            faults=self._bound_faults(),
        )
        warn_of_bad_fit(solution.fitted.argmax(1), some, log_p, some)
        self.jitter_ = solution.jitter
        self.ridge_, self.complexity_ = solution.ridge, math.sqrt(sup * solution.squared_norm)
        self.coefficients_ = solution.coefficients.numpy()
        self.points_ = None if solution.points is None else solution.points.numpy()
        network.zero_grad()  # the last gradients are as large as the network itself
        network.eval()  # for good: threads that predict at the same time must not see it in training mode
        self._network = network
        self.module_ = network.module
        self.kernel_ = network.head.kernel if isinstance(network.head, KernelHead) else None
        varied = float((solution.left_out - solution.left_out.mean(0)).abs().mean())
        if varied < 0.02 and bound.tau * self.complexity_ > 0.5:  # else there may just be nothing to learn
            warnings.warn(
                "Learning collapsed to the class frequencies: the outputs are the same for all rows. Use a smaller "
                f"complexity_weight (tau is {bound.tau:.3g}), a wider network or a lower learning rate.",
                CollapseWarning,
                stacklevel=3,
            )

    def _bound_faults(self) -> tuple[str, ...]:
        """Why the bound from training rows is no guarantee, in sentences."""
        weighted = self.class_weight is not None or self._weighted
        unbounded = self.sup in ("empirical", "published")
        return (WEIGHTED,) * weighted + (UNBOUNDED,) * unbounded

    # prediction ----------------------------------------------------------------------------------------

    @by_chunks
    def transform(self, X: Any) -> np.ndarray:
        """Features of the network, without the intercept."""
        return self._features(X).numpy()

    def _features(self, X: Any) -> Tensor:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], allow_nd=True, reset=False)
        if X.shape[1:] != self._input_shape:
            raise ValueError(f"Expected inputs of shape {self._input_shape}, as in fit. Got {X.shape[1:]} instead.")
        return self._network.features(self._inputs(X))

    def _outputs_and_support(self, X: Any) -> tuple[Tensor, Tensor]:
        Z = self._features(X)
        points = None if self.points_ is None else torch.from_numpy(self.points_)
        return self._network.head.apply_solution(Z, torch.from_numpy(self.coefficients_), points, self._support)
