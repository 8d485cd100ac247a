"""Fully connected networks, and bounds on their outputs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence

import torch
from torch import nn

__all__ = ["ACTIVATIONS", "STARTS", "checked_widths", "instance_of", "known_bound", "mlp"]


ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU, "sigmoid": nn.Sigmoid}
STARTS = {"he": None, "truncated-normal": 0.1}  # standard deviations; that of He depends on the inputs of the layer


def mlp(
    n_inputs: int,
    hidden: Sequence[int],
    *,
    activation: str = "relu",
    dropout: float = 0.0,
    start: str | float = "he",
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build fully connected layers, each with an activation; the last gives the features, with optional dropout.

    With the start "he", weights are normal with variance 2 / inputs and biases are zero. Otherwise weights are normal
    with the given standard deviation (0.1 for "truncated-normal") and drawn again beyond two of it, and biases are
    equal to it, as in the networks of [Hsu2018]_.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.networks.modules import mlp
    >>> mlp(4, (8, 3))(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    layers: list[nn.Module] = []
    deviation = STARTS[start] if isinstance(start, str) else start
    for width_in, width_out in zip([n_inputs, *hidden[:-1]], hidden, strict=True):
        linear = nn.utils.skip_init(nn.Linear, width_in, width_out)  # torch's own start uses the global seed
        _start_(linear, deviation, generator)
        layers += [linear, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers, *([nn.Dropout(dropout)] if dropout else []))


def _start_(linear: nn.Linear, deviation: float | None, generator: torch.Generator | None) -> None:
    if deviation is None:
        nn.init.normal_(linear.weight, std=math.sqrt(2.0 / linear.in_features), generator=generator)
        nn.init.zeros_(linear.bias)
        return
    nn.init.trunc_normal_(linear.weight, std=deviation, a=-2.0 * deviation, b=2.0 * deviation, generator=generator)
    nn.init.constant_(linear.bias, deviation)


def checked_widths(hidden: Sequence[int], owner: str) -> list[int]:
    """Return the widths of the layers as integers: one or more, none below 1."""
    widths = [int(width) for width in hidden]
    if not widths or min(widths) < 1:
        raise ValueError(
            f"The 'hidden' parameter of {owner} must be one or more widths of at least 1. Got {hidden!r} instead."
        )
    return widths


def instance_of(module: type[nn.Module], n_inputs: int) -> nn.Module:
    """Return an instance of a class of networks, which may need the number of inputs and nothing else.

    Examples
    --------
    >>> from torch import nn
    >>> from kernelwright.networks.modules import instance_of
    >>> class Small(nn.Sequential):
    ...     def __init__(self, n_inputs):
    ...         super().__init__(nn.Linear(n_inputs, 4), nn.Tanh())
    >>> instance_of(Small, 3)[0].in_features
    3
    """
    parameters = inspect.signature(module).parameters.values()
    named = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    needed = [each for each in named if each.default is each.empty]
    if not needed:
        return module()
    if len(needed) == 1:
        return (
            module(n_inputs) if needed[0].kind is not needed[0].KEYWORD_ONLY else module(**{needed[0].name: n_inputs})
        )
    raise ValueError(
        f"The class {module.__name__} needs arguments ({', '.join(each.name for each in needed)}). Pass an "
        f"instance: module={module.__name__}(...)."
    )


def known_bound(module: nn.Module, n_features: int) -> float:
    """Return an upper bound of ``|z|^2`` over all inputs, if the last layer of a ``Sequential`` has one.

    Examples
    --------
    >>> from kernelwright.networks.modules import known_bound, mlp
    >>> known_bound(mlp(4, (8, 3), activation="tanh"), 3)
    3.0
    """
    last, passing = module, (nn.Dropout, nn.Flatten, nn.Identity)
    while isinstance(last, nn.Sequential):
        last = next((layer for layer in reversed(list(last)) if not isinstance(layer, passing)), nn.Identity())
    match last:
        case nn.Softmax():
            return 1.0
        case nn.Tanh() | nn.Sigmoid() | nn.Softsign() | nn.Hardsigmoid():
            return float(n_features)
        case nn.Hardtanh():  # also ReLU6, which is a subclass
            return n_features * float(max(abs(last.min_val), abs(last.max_val))) ** 2
    raise ValueError(
        f"sup='bound' needs a network that ends in a bounded activation (Tanh, Sigmoid, Softmax, ...). This one ends "
        f"in {type(last).__name__}: use sup='empirical', or a number that you know to bound |z|^2."
    )
