"""Learnable numbers: stored without constraints, read and set as plain values.

A class declares ``lengthscale = Positive()`` and then writes ``self.lengthscale = 2.0``. What torch sees
(and what an optimiser moves) is the unconstrained parameter ``log_lengthscale``. Descriptors are used rather
than ``torch.nn.utils.parametrize`` because a parametrised module cannot be pickled.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "WEAK_PULL",
    "Parametrised",
    "Positive",
    "Simplex",
    "bounds_from_here",
    "plain_gradients",
    "plain_values",
    "raw_bounds",
]

WEAK_PULL = 0.1  # weight of penalties that should matter only in directions about which the data say nothing


class _Constrained:
    """A plain value on the outside, an unconstrained ``nn.Parameter`` on the inside."""

    prefix: str
    firm = False  # whether a start outside the bounds is moved to the nearest bound

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.raw_name = name, f"{self.prefix}_{name}"

    def __get__(self, module: nn.Module | None, owner: type | None = None) -> Any:
        return self if module is None else self.constrain(getattr(module, self.raw_name))

    def __set__(self, module: nn.Module, value: Any) -> None:
        plain = torch.as_tensor(np.asarray(value, dtype=np.float64)) if not torch.is_tensor(value) else value
        self.check(module, plain)
        old = module._parameters.get(self.raw_name)
        raw = nn.Parameter(self.unconstrain(plain.detach().to(torch.float64)).clone())
        raw.requires_grad_(old is None or old.requires_grad)
        module.register_parameter(self.raw_name, raw)

    def check(self, module: nn.Module, plain: Tensor) -> None:
        """Raise a ValueError that names the parameter if ``plain`` is not allowed."""
        raise NotImplementedError

    def constrain(self, raw: Tensor) -> Tensor:
        """Convert the unconstrained value to the plain value."""
        raise NotImplementedError

    def unconstrain(self, plain: Tensor) -> Tensor:
        """Convert the plain value to the unconstrained value."""
        raise NotImplementedError

    def plain_gradient(self, raw: Tensor, gradient: Tensor) -> Tensor:
        """Convert a gradient in the raw parameter to a gradient in the plain value."""
        raise NotImplementedError

    def raw_bounds(self) -> tuple[float, float]:
        """Return the bounds within which an optimiser may move the raw parameter."""
        raise NotImplementedError


class Positive(_Constrained):
    """A positive number or vector, stored as its logarithm; ``lower`` and ``upper`` bound it while it is learned.

    If learning starts outside the bounds, they are widened, unless they are ``firm``.
    """

    prefix = "log"

    def __init__(self, lower: float = 1e-5, upper: float = 1e5, *, vectors: bool = True, firm: bool = False) -> None:
        self.lower, self.upper, self.vectors, self.firm = lower, upper, vectors, firm

    def check(self, module: nn.Module, plain: Tensor) -> None:
        good = bool((torch.isfinite(plain) & (plain > 0)).all()) and plain.numel() > 0
        if not good or plain.ndim > int(self.vectors):
            expected = "a positive number" + (" or a vector of them" if self.vectors else "")
            raise ValueError(
                f"The {self.name!r} parameter of {type(module).__name__} must be {expected}. "
                f"Got {plain.tolist()!r} instead."
            )

    def constrain(self, raw: Tensor) -> Tensor:
        return raw.exp()

    def unconstrain(self, plain: Tensor) -> Tensor:
        return plain.log()

    def plain_gradient(self, raw: Tensor, gradient: Tensor) -> Tensor:
        return gradient / raw.exp()

    def raw_bounds(self) -> tuple[float, float]:
        return float(np.log(self.lower)), float(np.log(self.upper))


class Simplex(_Constrained):
    """Positive weights that sum to one, stored as logits relative to the first; ``size`` weights, if it is given."""

    prefix = "logit"

    def __init__(self, size: int | None = None) -> None:
        self.size = size

    def check(self, module: nn.Module, plain: Tensor) -> None:
        good = plain.ndim == 1 and bool((plain > 0).all()) and abs(float(plain.sum()) - 1) < 1e-6
        if not good or self.size not in (None, len(plain)):
            expected = ("" if self.size is None else f"{self.size} ") + "positive weights with sum 1"
            raise ValueError(
                f"The {self.name!r} parameter of {type(module).__name__} must be {expected}. "
                f"Got {plain.tolist()!r} instead."
            )

    def constrain(self, raw: Tensor) -> Tensor:
        return torch.softmax(torch.cat([raw.new_zeros(1), raw]), 0)

    def unconstrain(self, plain: Tensor) -> Tensor:
        return (plain[1:] / plain[0]).log()

    def plain_gradient(self, raw: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient along the simplex: the one with sum(w * g) = 0 (any other differs by a constant)."""
        w = self.constrain(raw)
        return torch.cat([-gradient.sum()[None], gradient]) / w

    def raw_bounds(self) -> tuple[float, float]:
        return -6.0, 6.0


def _declaration(module: nn.Module, raw_name: str) -> tuple[_Constrained, str] | None:
    """Return the descriptor behind a raw parameter and its plain dotted name; None if it has no descriptor."""
    path, _, leaf = raw_name.rpartition(".")
    for cls in type(module.get_submodule(path)).__mro__:
        for descriptor in vars(cls).values():
            if isinstance(descriptor, _Constrained) and descriptor.raw_name == leaf:
                return descriptor, f"{path}.{descriptor.name}" if path else descriptor.name
    return None


def plain_values(module: nn.Module) -> dict[str, np.ndarray]:
    """Return every learnable number of a module under its plain name.

    A parameter declared without a constraint (a network's weight) keeps its own name and value.
    """
    values = {}
    for raw_name, raw in module.named_parameters():
        found = _declaration(module, raw_name)
        name, plain = raw_name, raw.detach()
        if found is not None:
            name, plain = found[1], found[0].constrain(plain)
        values[name] = plain.numpy().copy()
    return values


def plain_gradients(module: nn.Module, gradients: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Convert gradients in raw parameters to gradients in plain values, under plain names."""
    plain = {}
    for raw_name, gradient in gradients.items():
        found = _declaration(module, raw_name)
        name = raw_name
        if found is not None:
            name, gradient = found[1], found[0].plain_gradient(module.get_parameter(raw_name).detach(), gradient)
        plain[name] = gradient.numpy()
    return plain


def raw_bounds(module: nn.Module, raw_name: str) -> tuple[float, float]:
    """Return the bounds of a raw parameter for an optimiser (infinite if it is unconstrained)."""
    found = _declaration(module, raw_name)
    return (-np.inf, np.inf) if found is None else found[0].raw_bounds()


def bounds_from_here(module: nn.Module, raw_name: str) -> tuple[Tensor, Tensor]:
    """Return the bounds for learning that starts at the current values, widened to include them."""
    low, high = raw_bounds(module, raw_name)
    found, raw = _declaration(module, raw_name), module.get_parameter(raw_name).detach()
    if found is not None and found[0].firm:
        return torch.full_like(raw, low), torch.full_like(raw, high)
    return raw.clamp(max=low), raw.clamp(min=high)


class Parametrised(nn.Module):
    """Base of kernels and feature maps: learnable numbers, nested parts, scikit-learn's parameter protocol."""

    # learning: each step is passed on to the parts, and changes the object itself ---------------------------

    def prepared(self, X: Tensor, weights: Tensor | None = None) -> Self:
        """Return a copy that is prepared on the points X; the object itself does not change."""
        made = copy.deepcopy(self)
        made.prepare_(X, weights)
        return made

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        """Set what depends on the data before learning: the number of length scales, "median" starts."""
        for child in self.children():
            if isinstance(child, Parametrised):
                child.prepare_(X, weights)

    def use_median_(self) -> None:
        """Set length scales to the median distance when ``prepare_`` is called (the median heuristic)."""
        for child in self.children():
            if isinstance(child, Parametrised):
                child.use_median_()

    def tie_(self) -> None:
        """Tie the length scales for the isotropic stage of learning; ``prepare_`` unties them."""
        for child in self.children():
            if isinstance(child, Parametrised):
                child.tie_()

    def stretch_(self, factor: float) -> None:
        """Multiply all length scales that are learned by a factor."""
        for child in self.children():
            if isinstance(child, Parametrised):
                child.stretch_(factor)

    def penalty(self) -> Tensor:
        """Return a shrinkage term of the learnable numbers (spread of length scales), added by some objectives."""
        parts = [child.penalty() for child in self.children() if isinstance(child, Parametrised)]
        return sum(parts, torch.zeros((), dtype=torch.float64))

    # scikit-learn's parameter protocol -----------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return constructor arguments with their current values, nested ones as ``name__parameter``."""
        params: dict[str, Any] = {}
        for name in _constructor_arguments(type(self)):
            value = getattr(self, name)
            if torch.is_tensor(value):
                value = _tidy(value.detach().numpy())
            params[name] = value
            if deep and isinstance(value, Parametrised):
                params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set constructor arguments, nested ones as ``name__parameter``."""
        allowed = _constructor_arguments(type(self))
        for name, value in params.items():
            head, _, tail = name.partition("__")
            if head not in allowed:
                raise ValueError(
                    f"Invalid parameter {name!r} for {type(self).__name__}. Valid parameters are: {allowed}."
                )
            if tail:
                getattr(self, head).set_params(**{tail: value})
            else:
                setattr(self, head, value)
        return self

    def __sklearn_clone__(self) -> Any:
        return copy.deepcopy(self)

    # Parameters are pickled as arrays: two equal kernels then give the same bytes, as joblib's hash requires.

    def __getstate__(self) -> dict[str, Any]:
        raw = {name: (p.detach().numpy(), p.requires_grad) for name, p in self._parameters.items() if p is not None}
        buffers = {name: b.numpy() for name, b in self._buffers.items() if b is not None}
        return self.__dict__ | {"_parameters": raw, "_buffers": buffers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        parameters = {
            name: nn.Parameter(torch.tensor(array), requires_grad=learned)
            for name, (array, learned) in state["_parameters"].items()
        }
        buffers = {name: torch.tensor(array) for name, array in state["_buffers"].items()}
        super().__setstate__(state | {"_parameters": parameters, "_buffers": buffers})

    def __repr__(self) -> str:
        def short(value: Any) -> str:
            if isinstance(value, float):
                return f"{value:.4g}"
            if isinstance(value, np.ndarray) and value.ndim != 1:
                return f"<array of shape {value.shape}>"
            if isinstance(value, np.ndarray):
                return "[" + ", ".join(f"{v:.4g}" for v in value[:4]) + (", ...]" if len(value) > 4 else "]")
            return repr(value)

        arguments = ", ".join(f"{name}={short(value)}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({arguments})"


def _constructor_arguments(cls: type) -> list[str]:
    code = cls.__init__.__code__  # type: ignore[misc]
    return list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def _tidy(value: np.ndarray) -> float | np.ndarray:
    """Return a number as it was set: taking its logarithm and back changes the last bit."""
    digits = np.array([float(f"{number:.15g}") for number in value.ravel()]).reshape(value.shape)
    return float(digits) if digits.ndim == 0 else digits
