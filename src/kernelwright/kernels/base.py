"""The base class of kernels, and their composition.

A kernel is a ``torch.nn.Module`` whose ``forward(X, Z)`` is its formula. ``k1 + k2``, ``k1 * k2``, ``2.0 * k``
and ``sum([...])`` give kernels again.

Examples
--------
>>> import numpy as np, torch
>>> from kernelwright.kernels import Kernel, Gaussian
>>> from kernelwright.parameters import Positive
>>> class Cosine(Kernel):
...     "k(x, z) = prod_d cos((x_d - z_d) / period), a kernel of one's own."
...
...     period = Positive()
...
...     def __init__(self, period=1.0):
...         super().__init__()
...         self.period = period
...
...     def forward(self, X, Z=None):
...         Z = X if Z is None else Z
...         return torch.cos((X[:, None] - Z) / self.period).prod(-1)
>>> kernel = Gaussian() * Cosine(period=2.0) + 0.5
>>> kernel(np.zeros((2, 3))).round(2)
array([[1.5, 1.5],
       [1.5, 1.5]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kernelwright.inputs.arrays import as_matrix
from kernelwright.numerics.linalg import Workspace
from kernelwright.numerics.sparse_rows import KEPT_ROWS
from kernelwright.parameters import Parametrised, Positive, Simplex
from kernelwright.storage.saved import saved

__all__ = ["Constant", "ConvexSum", "Kernel", "Product", "Scaled", "Sum"]

BLOCK_ROWS = 256
DIAGONAL_ROWS = 32  # rows whose kernel matrix is computed to read its diagonal, if there is no formula for the diagonal

Gradients = dict[str, Tensor]
Pullback = Callable[[Any], Gradients]


class Kernel(Parametrised):
    """A symmetric function of two points with learnable numbers. Subclasses write ``forward``."""

    takes_outer = False  # whether the pullback of ``vjp`` accepts products of thin matrices

    def __init_subclass__(cls, **settings: Any) -> None:
        """Reset inherited closed forms in a subclass that defines its own ``forward`` or ``vjp``."""
        super().__init_subclass__(**settings)
        if "forward" in vars(cls) and "vjp" not in vars(cls) and "vjp_in" not in vars(cls):
            cls.vjp, cls.takes_outer = Kernel.vjp, False  # type: ignore[method-assign]
        if "vjp" in vars(cls) and "vjp_in" not in vars(cls):
            cls.vjp_in = Kernel.vjp_in  # type: ignore[method-assign]

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        """Return the matrix ``k(x_i, z_j)``; ``Z = None`` means ``Z = X``."""
        raise NotImplementedError

    def against(self, Z: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the function ``X -> forward(X, Z)``, with Z prepared once for many blocks of X; without gradient."""
        return lambda X: self.forward(X, Z)

    def diag(self, X: Any) -> Any:
        """Return ``k(x_i, x_i)`` as a vector."""
        return self._through_border(self._diag, X)

    def _diag(self, X: Tensor) -> Tensor:
        return torch.cat([self.forward(some).diagonal() for some in X.split(DIAGONAL_ROWS)])

    def sup_diag(self, X: Any = None) -> Tensor:
        """Return ``alpha^2 = sup_x k(x, x)``; for an unbounded kernel the largest value over the points ``X``.

        The latter is *empirical*: a bound that uses it only covers inputs no larger than these.
        """
        if X is None:
            raise ValueError(
                f"{type(self).__name__} has no known upper bound on k(x, x). Pass the points over which the "
                "largest value is to be taken: kernel.sup_diag(X)."
            )
        return self._diag(self.encode(X)).max()  # tensors are already encoded points

    @property
    def bounded(self) -> bool:
        """Whether ``sup_diag`` is known without data."""
        return False

    @property
    def local(self) -> Kernel:
        """The part that falls with distance, which support is computed from: the kernel itself, without its trend."""
        return self

    def usual_diag(self, X: Tensor) -> Tensor:
        """Return the ``alpha^2`` by which learning measures complexity: a usual value, if a few points have more."""
        return self.sup_diag(X)

    def completed_(self, K: Tensor, X: Tensor, Z: Tensor | None = None) -> Tensor:
        """Add to a matrix of the local part, in its memory, what makes it one of this kernel."""
        return K

    @property
    def definite(self) -> bool:
        """Whether the kernel is positive definite by construction; a learned kernel may not be."""
        return all(child.definite for child in self.children() if isinstance(child, Kernel))

    @property
    def takes_vectors(self) -> bool:
        """Whether points are rows of numbers (and not, say, strings)."""
        return all(child.takes_vectors for child in self.children() if isinstance(child, Kernel))

    def encode(self, X: Any) -> Tensor:
        """Convert user input to a tensor with one row for each point; tensors are already encoded.

        In a combination of kernels, the first kernel that does not take vectors decides.
        """
        special = self._special_part()
        return as_matrix(X) if special is None else special.encode(X)

    def encode_training(self, X: Any) -> Tensor:
        """Encode training points, if a kernel treats them differently from new points."""
        special = self._special_part()
        return self.encode(X) if special is None else special.encode_training(X)

    def _special_part(self) -> Kernel | None:
        parts = (part for part in self.children() if isinstance(part, Kernel) and not part.takes_vectors)
        return next(parts, None)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        """Return the kernel matrix of X and its pullback (a vector-Jacobian product).

        The pullback takes ``dq/dK`` of any scalar q (a matrix; if ``takes_outer``, also an
        :class:`~kernelwright.numerics.products.Outer`) and returns the gradient of q in every learnable raw parameter.
        The matrix need not be symmetric, and the pullback may overwrite it. This default differentiates ``forward`` by
        autograd.
        """
        parameters = {name: p for name, p in self.named_parameters() if p.requires_grad}
        with torch.enable_grad():
            K = self.forward(X)

        def pullback(dK: Tensor) -> Gradients:
            if not K.requires_grad:
                return {name: torch.zeros_like(p) for name, p in parameters.items()}
            grads = torch.autograd.grad(K, list(parameters.values()), dK, allow_unused=True)
            pairs = zip(parameters.items(), grads, strict=True)
            return {name: torch.zeros_like(p) if g is None else g for (name, p), g in pairs}

        return K.detach(), pullback

    def vjp_in(self, workspace: Workspace | None, X: Tensor) -> tuple[Tensor, Pullback]:
        """Return ``vjp(X)``; the matrix may lie in a workspace, where it is valid until the next call."""
        return self.vjp(X)

    def matrix(self, X: Tensor) -> Tensor:
        """Return ``forward(X)`` without gradient, by blocks of rows: half the work, and little extra memory."""
        with torch.no_grad():
            if len(X) <= (BLOCK_ROWS if torch.is_tensor(X) else KEPT_ROWS) or not self.takes_vectors:
                return self.forward(X)
            K = X.new_empty(len(X), len(X))
            for start in range(0, len(X), BLOCK_ROWS):
                stop = start + BLOCK_ROWS
                rows = self.forward(X[start:stop], X[:stop])
                K[start:stop, :stop] = rows
                K[:start, start:stop] = rows[:, :start].T
            return K

    # numpy at the border -------------------------------------------------------------------------------

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """Return the kernel matrix of user data: a tensor (with gradient) for tensors, else a NumPy array."""
        return self._through_border(super().__call__, X, Z)

    def _through_border(self, function: Callable[..., Tensor], *inputs: Any) -> Any:
        points = [x if x is None else self.encode(x) for x in inputs]
        with torch.set_grad_enabled(torch.is_grad_enabled() and any(torch.is_tensor(x) for x in inputs)):
            found = function(*points)
        return found if any(torch.is_tensor(x) for x in inputs) else found.numpy()

    # composition ---------------------------------------------------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        return self if _is_zero(other) else Sum(self, _lift(other))

    def __radd__(self, other: Kernel | float) -> Kernel:
        return self if _is_zero(other) else Sum(_lift(other), self)

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    __rmul__ = __mul__


def _is_zero(value: Kernel | float) -> bool:
    """Return whether a summand can be dropped: ``sum([...])`` starts from the number zero."""
    return isinstance(value, (int, float)) and value == 0


def _lift(value: Kernel | float) -> Kernel:
    """Convert a number to a constant kernel."""
    return value if isinstance(value, Kernel) else Constant(value)


def prefixed(prefix: str, gradients: Gradients) -> Gradients:
    """Return the gradients of a part under the names that they have in the whole."""
    return {f"{prefix}.{name}": gradient for name, gradient in gradients.items()}


@saved("constant-kernel", parameters="log_value")
class Constant(Kernel):
    """``k(x, z) = value``."""

    value = Positive(vectors=False)

    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        self.value = value

    bounded = True  # type: ignore[assignment]

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return self.value.expand(len(X), len(X if Z is None else Z)).clone()

    def _diag(self, X: Tensor) -> Tensor:
        return self.value.expand(len(X)).clone()

    def sup_diag(self, X: Any = None) -> Tensor:
        return self.value


class _Pair(Kernel):
    """Two kernels on the same points."""

    left: Kernel
    right: Kernel

    def __init__(self, left: Kernel, right: Kernel) -> None:
        super().__init__()
        self.left, self.right = left, right

    @property
    def bounded(self) -> bool:
        return self.left.bounded and self.right.bounded


@saved("sum-kernel", fields="left right")
class Sum(_Pair):
    """``k(x, z) = left(x, z) + right(x, z)``."""

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return self.left.forward(X, Z) + self.right.forward(X, Z)

    def _diag(self, X: Tensor) -> Tensor:
        return self.left._diag(X) + self.right._diag(X)

    def sup_diag(self, X: Any = None) -> Tensor:
        if self.bounded or X is None:
            return self.left.sup_diag(X) + self.right.sup_diag(X)
        return super().sup_diag(X)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        (K_left, back_left), (K_right, back_right) = self.left.vjp(X), self.right.vjp(X)
        return (
            K_left + K_right,
            lambda dK: prefixed("left", back_left(dK.clone())) | prefixed("right", back_right(dK)),
        )


@saved("product-kernel", fields="left right")
class Product(_Pair):
    """``k(x, z) = left(x, z) right(x, z)``."""

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return self.left.forward(X, Z) * self.right.forward(X, Z)

    def _diag(self, X: Tensor) -> Tensor:
        return self.left._diag(X) * self.right._diag(X)

    def sup_diag(self, X: Any = None) -> Tensor:
        if self.bounded or X is None:
            return self.left.sup_diag(X) * self.right.sup_diag(X)
        return super().sup_diag(X)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        (K_left, back_left), (K_right, back_right) = self.left.vjp(X), self.right.vjp(X)
        return (
            K_left * K_right,
            lambda dK: prefixed("left", back_left(dK * K_right)) | prefixed("right", back_right(dK * K_left)),
        )


@saved("scaled-kernel", fields="kernel", parameters="log_factor")
class Scaled(Kernel):
    """``k(x, z) = factor * kernel(x, z)``."""

    factor = Positive(vectors=False)
    log_factor: nn.Parameter

    def __init__(self, kernel: Kernel, factor: float = 1.0) -> None:
        super().__init__()
        self.kernel, self.factor = kernel, factor

    @property
    def bounded(self) -> bool:
        return self.kernel.bounded

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return self.factor * self.kernel.forward(X, Z)

    def _diag(self, X: Tensor) -> Tensor:
        return self.factor * self.kernel._diag(X)

    def sup_diag(self, X: Any = None) -> Tensor:
        return self.factor * self.kernel.sup_diag(X)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        K, back = self.kernel.vjp(X)
        factor = self.factor.detach()

        def pullback(dK: Tensor) -> Gradients:
            own = {"log_factor": factor * (dK * K).sum()} if self.log_factor.requires_grad else {}
            return own | prefixed("kernel", back(factor * dK))

        return factor * K, pullback


@saved("convex-sum-kernel", fields="parts", parameters="logit_weights")
class ConvexSum(Kernel):
    """``k(x, z) = sum_b w_b k_b(x, z)`` with learnable weights ``w >= 0``, ``sum w = 1``.

    If all kernels have ``k(x, x) = 1``, so has the sum: the weights do not change the scale of the complexity.
    """

    weights = Simplex()
    logit_weights: nn.Parameter

    def __init__(self, kernels: list[Kernel], weights: Any = None) -> None:
        super().__init__()
        if len(kernels) == 0 or (np.ndim(weights) == 1 and len(weights) != len(kernels)):
            raise ValueError(
                f"ConvexSum needs at least one kernel, and a weight for each if weights are given. Got {len(kernels)} "
                f"kernels and weights {weights!r}."
            )
        self.kernels = kernels
        self.weights = np.full(len(kernels), 1 / len(kernels)) if weights is None else weights

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels in the sum."""
        return list(self._modules["parts"])  # type: ignore[call-overload]

    @kernels.setter
    def kernels(self, kernels: list[Kernel]) -> None:
        self._modules["parts"] = nn.ModuleList(kernels)

    def children(self) -> Any:
        """Yield the kernels themselves, not the list in which torch keeps them."""
        return iter(self.kernels)

    @property
    def bounded(self) -> bool:
        return all(kernel.bounded for kernel in self.kernels)

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return sum(w * kernel.forward(X, Z) for w, kernel in zip(self.weights, self.kernels, strict=True))

    def _diag(self, X: Tensor) -> Tensor:
        return sum(w * kernel._diag(X) for w, kernel in zip(self.weights, self.kernels, strict=True))

    def sup_diag(self, X: Any = None) -> Tensor:
        if self.bounded or X is None:
            return sum(w * kernel.sup_diag(X) for w, kernel in zip(self.weights, self.kernels, strict=True))
        return super().sup_diag(X)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        parts = [kernel.vjp(X) for kernel in self.kernels]
        w = self.weights.detach()

        def pullback(dK: Tensor) -> Gradients:
            gradients: Gradients = {}
            for b, (_, back) in enumerate(parts):
                gradients |= prefixed(f"parts.{b}", back(w[b] * dK))
            if self.logit_weights.requires_grad:
                gradients["logit_weights"] = simplex_gradient(w, torch.stack([(dK * K).sum() for K, _ in parts]))
            return gradients

        return sum(w_b * K for w_b, (K, _) in zip(w, parts, strict=True)), pullback


def simplex_gradient(w: Tensor, gradient: Tensor) -> Tensor:
    """Convert the gradient in the weights of a :class:`Simplex` to the gradient in its logits."""
    return (w * (gradient - (w * gradient).sum()))[1:]
