"""Options of a network, its head and its training, as small objects."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from kernelwright.inputs.options import Option
from kernelwright.networks.modules import ACTIVATIONS, STARTS, checked_widths, mlp
from kernelwright.networks.training import Plan
from kernelwright.storage.saved import saved

__all__ = ["MLP", "HeadOptions", "Training"]

HOLD_OUT_FROM = 2000  # rows; with fewer, all rows are needed for training
JUDGED_ROWS = 1000  # enough to choose a ridge and the two parameters of a probability map


@saved("mlp-options")
class MLP(Option):
    """A fully connected network for any number of inputs.

    Parameters
    ----------
    hidden : sequence of int, default=(96, 32)
        Widths; the last is the number of features.
    activation : {"relu", "tanh", "silu", "sigmoid"}, default="relu"
        After every layer, the last included.
    dropout : float, default=0.0
        Share of features dropped during training.
    start : {"he", "truncated-normal"} or float, default="he"
        The first weights. "he": normal with variance 2 / inputs, and biases of zero. "truncated-normal", the published
        start: normal with the standard deviation 0.1, cut off at two of it, and biases of 0.1. A number is another
        standard deviation, and bias. With ReLU both starts are level. One layer of sigmoids is, too; two or more do not
        learn from the truncated normal (39.9 % on wine, the largest class, where "he" has 98.9 at the rate 0.05):
        their features start nearly constant.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingNetworkClassifier, networks
    >>> X, y = load_iris(return_X_y=True)
    >>> module = networks.MLP((16, 4), activation="tanh", dropout=0.1)
    >>> EmbeddingNetworkClassifier(module, random_state=0).fit(X, y).transform(X).shape
    (150, 4)
    >>> published = networks.MLP((16, 32, 8), start="truncated-normal")
    >>> bool(EmbeddingNetworkClassifier(published, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    word: ClassVar[str] = "mlp"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden": ["array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "start": [StrOptions(set(STARTS)), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        hidden: Sequence[int] = (96, 32),
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        start: str | float = "he",
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.start = start

    def checked(self) -> Self:
        """Return the object, or raise an error if a setting is invalid."""
        self._validate_params()
        checked_widths(self.hidden, type(self).__name__)
        return self

    def build(self, n_inputs: int) -> nn.Sequential:
        """Return a network for ``n_inputs`` inputs, with random weights from torch's own generator."""
        widths = checked_widths(self.hidden, type(self).__name__)
        return mlp(n_inputs, widths, activation=self.activation, dropout=self.dropout, start=self.start)


@saved("head-options")
class HeadOptions(Option):
    """The embedding on top of a network: ridge regression of the classes on its features, or on a kernel of these.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        The initial value of lambda. "auto" is a hundredth of the mean square of a feature at the start (0.01 with a
        kernel), so that the scale of the network's features does not matter.
    intercept : bool, default=True
        Add a constant feature to those of the network (or add one to a kernel).
    sup : {"empirical", "bound", "published"} or float, default="empirical"
        ``alpha^2 = sup k(x, x)`` in the complexity. "empirical": the largest ``k(x, x)`` in the batch (or the bound of
        a bounded kernel); the complexity then holds for inputs no larger than these. "bound": a bound for all
        inputs, if the network ends in a bounded activation. A number: a bound on ``|z|^2`` that you know.
        "published": 1, because the published networks leave alpha out.
    choose_ridge : bool, default=True
        If rows are held out, choose the final ridge by their leave-one-out outputs. (Training rows would choose a ridge
        that is too small.)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingNetworkClassifier, networks
    >>> X, y = load_iris(return_X_y=True)
    >>> head = networks.HeadOptions(ridge=0.1, intercept=False)
    >>> EmbeddingNetworkClassifier(hidden=(8,), head=head, random_state=0).fit(X, y).coefficients_.shape
    (8, 3)
    """

    word: ClassVar[str] = "ridge"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "intercept": ["boolean"],
        "sup": [Interval(Real, 0, None, closed="neither"), StrOptions({"empirical", "bound", "published"})],
        "choose_ridge": ["boolean"],
    }

    def __init__(
        self,
        *,
        ridge: float | str = "auto",
        intercept: bool = True,
        sup: float | str = "empirical",
        choose_ridge: bool = True,
    ) -> None:
        self.ridge = ridge
        self.intercept = intercept
        self.sup = sup
        self.choose_ridge = choose_ridge


@saved("network-training")
class Training(Option):
    """The training of a network: Adam over mini-batches, epoch by epoch.

    Parameters
    ----------
    batch_size, max_epochs : int or "auto", default="auto"
        "auto" is one batch of all rows and 300 epochs up to 1000 rows. Beyond, it is mini-batches of 500 rows (or four
        rows per feature, if that is more) and enough epochs for 300 steps, at least 20.
    learning_rate : float, default=0.01
    schedule : {"cosine", None}, default="cosine"
        "cosine" lowers the learning rate to zero along half a cosine.
    max_grad_norm : float or None, default=None
        Gradients with a larger norm are scaled down to this norm.
    early_stopping : float, bool, "auto" or None, default="auto"
        Share of held-out rows: they decide when to stop, which epoch is best, the final ridge and the calibration of
        probabilities. (They are part of the final embedding.) True is a tenth, at most 1000 rows, and "auto" the same
        if there are 2000 rows or more. False and None hold out nothing.
    patience : int, default=10
        Training stops after this many epochs without a better loss at the held-out rows.
    checkpoint : path or None, default=None
        A file that is written after every epoch. If it exists, ``fit`` resumes from it, with exactly the result of an
        uninterrupted run. A file from other data or settings raises an error.
    device : str or torch.device, default="auto"
        The device of the network, or "auto" for CUDA if available, else the CPU.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the network after training. Training is always in single precision, and the solve in double. "auto"
        is double for the fully connected network and single for a given one. In single precision, the outputs of a row
        alone and in a batch may differ in the sixth digit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingNetworkClassifier, networks
    >>> X, y = load_iris(return_X_y=True)
    >>> training = networks.Training(max_epochs=20, batch_size=50, learning_rate=0.02)
    >>> model = EmbeddingNetworkClassifier(hidden=(8,), training=training, random_state=0).fit(X, y)
    >>> model.n_iter_, model.set_params(training__learning_rate=0.1).training.learning_rate
    (20, 0.1)
    """

    word: ClassVar[str] = "adam"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "batch_size": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"cosine"}), None],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": ["boolean", Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"}), None],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "checkpoint": [str, os.PathLike, None],
        "device": [str, torch.device],
        "precision": [StrOptions({"auto", "single", "double"})],
    }

    def __init__(
        self,
        *,
        batch_size: int | str = "auto",
        max_epochs: int | str = "auto",
        learning_rate: float = 0.01,
        schedule: str | None = "cosine",
        max_grad_norm: float | None = None,
        early_stopping: float | bool | str | None = "auto",
        patience: int = 10,
        checkpoint: str | os.PathLike[str] | None = None,
        device: str | torch.device = "auto",
        precision: str = "auto",
    ) -> None:
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.max_grad_norm = max_grad_norm
        self.early_stopping = early_stopping
        self.patience = patience
        self.checkpoint = checkpoint
        self.device = device
        self.precision = precision

    def plan(self, n_rows: int, width: int) -> Plan:
        """Return the training plan for ``n_rows`` rows and ``width`` features, including the intercept."""
        batch = self.batch_size
        if isinstance(batch, str):
            batch = n_rows if n_rows <= 1000 else max(500, 4 * width)
        batch = min(int(batch), n_rows)
        epochs = self.max_epochs
        if isinstance(epochs, str):
            epochs = max(20, math.ceil(300 / max(1, round(n_rows / batch))))
        return Plan(batch, int(epochs), self.learning_rate, self.schedule, self.max_grad_norm, patience=self.patience)

    def n_held_out(self, n: int) -> int:
        """Return how many of n rows (or groups) are held out."""
        share = self.early_stopping
        if isinstance(share, str):
            share = n >= HOLD_OUT_FROM
        if isinstance(share, (bool, np.bool_)):
            share = min(0.1, JUDGED_ROWS / n) if share else None
        return 0 if share is None else min(max(round(float(share) * n), 1), n - 1)

    def torch_device(self) -> str:
        """Return the name of a device that is available to torch."""
        if self.device == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                "The 'device' parameter of Training must be 'auto' or a device that is available to torch. "
                f"Got {self.device!r} instead."
            ) from error
        return str(self.device)
