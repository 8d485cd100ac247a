"""Basis functions of pairs. A learned kernel is a linear combination of them: ``k*(x, x') = sum_p w_p phi_p(x, x')``.

A basis also knows the Gram matrix G of its functions in the hyper-RKHS, so that ``|k*|^2 = w^T G w``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from kernelwright.features.nystroem import Nystroem
from kernelwright.hyper.kernels import HyperKernel, PointPairs
from kernelwright.kernels import Gaussian
from kernelwright.numerics.distances import cubed_sum, squared_euclidean
from kernelwright.numerics.linalg import eigen
from kernelwright.storage.saved import saved

__all__ = ["RANK", "Basis", "MidpointBasis", "PairBasis", "all_pairs_of", "joined", "landmarks_among", "whitening"]

KERNEL_BLOCK = 2**18  # values of basis functions held at once while a kernel matrix is computed
RANK = 1e-12  # relative: directions with a smaller norm in the hyper-RKHS are rounding error
CACHE_ENTRIES = 2**16  # kernel values whose temporaries stay in the cache


class Basis(Protocol):
    """Some functions in the hyper-RKHS of ``hyperkernel``, made from ``points``."""

    @property
    def hyperkernel(self) -> HyperKernel:
        """The hyper-kernel that the functions are sections of."""

    def __len__(self) -> int:
        """Return the number of functions."""

    def at(self, pairs: PointPairs) -> Tensor:
        """Return the values at the pairs, one column for each function."""

    def gram(self) -> Tensor:
        """Return the inner products of the functions."""

    def combine(self, w: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return the matrix ``sum_p w_p phi_p(x_i, z_j)``."""

    def fixed(self) -> Basis:
        """Return the same functions with a hyper-kernel whose parameters are fixed."""


@saved("pair-basis")
@dataclass(frozen=True, eq=False)
class PairBasis:
    """``phi_p = kk((r_p, s_p), .)`` for landmark pairs, Eqs. (3) and (9) of [Liu2021]_."""

    hyperkernel: HyperKernel
    pairs: PointPairs

    def __len__(self) -> int:
        return len(self.pairs.left)

    def at(self, pairs: PointPairs) -> Tensor:
        return self.hyperkernel.forward(pairs, self.pairs)

    def gram(self) -> Tensor:
        """Compute by blocks of rows, because a hyper-kernel needs several temporary matrices."""
        rows = torch.arange(len(self)).split(max(1, KERNEL_BLOCK // max(len(self), 1)))
        blocks = [self.at(PointPairs(self.pairs.left[some], self.pairs.right[some])) for some in rows]
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks)

    def combine(self, w: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Compute by blocks of pairs, because every pair and every function have a hyper-kernel value."""
        values = [
            self.at(PointPairs(X[codes // len(Z)], Z[codes % len(Z)])) @ w
            for codes in torch.arange(len(X) * len(Z)).split(max(1, KERNEL_BLOCK // max(len(self), 1)))
        ]
        return torch.cat(values).reshape(len(X), len(Z)) if values else X.new_zeros(len(X), len(Z))

    def as_midpoints(self, w: Tensor) -> tuple[MidpointBasis, Tensor] | None:
        """Write the same kernel in the midpoint form, or return None if the hyper-kernel is not made of Gaussians.

        A landmark pair (r, s) enters only through its midpoint z: ``kk((r, s), .) = exp(-|r - s|^2/2a) kk((z, z), .)``.
        """
        widths = self.hyperkernel.widths()
        if widths is None:
            return None
        lengths = self.hyperkernel.scaled_pairs(self.pairs).squared_length
        basis = MidpointBasis(self.hyperkernel, self.pairs.middle)
        return basis, (w * torch.exp(-lengths / (2 * widths[0][:, None]))).reshape(-1)

    def fixed(self) -> PairBasis:
        return replace(self, hyperkernel=self.hyperkernel.fixed())

    def kept(self, some: Tensor) -> PairBasis:
        """Return some of the functions."""
        return replace(self, pairs=PointPairs(self.pairs.left[some], self.pairs.right[some]))


@saved("midpoint-basis")
@dataclass(frozen=True, eq=False)
class MidpointBasis:
    """``phi_sq(x, x') = exp(-|x - x'|^2/2a'_s) e_sq(x) e_sq(x')``, ``e_sq(x) = exp(-|x - z_q|^2/4c_s)``.

    These are the functions ``kk_s((z_q, z_q), .)`` of a sum of Gaussian hyper-kernels, with ``1/a' = 1/a - 1/4c``.
    They separate, so a kernel matrix needs one matrix product for each width, whatever pairs it was learned from. If
    ``c >= a/4``, the positive and the negative weights give two kernels, and k* is their difference: an explicit Krein
    decomposition.
    """

    hyperkernel: HyperKernel
    centres: Tensor

    def __post_init__(self) -> None:
        if self.hyperkernel.widths() is None:
            raise ValueError(
                "The midpoint form needs a Gaussian hyper-kernel or a sum of them. "
                f"Got {type(self.hyperkernel).__name__}: use solver='nystroem'."
            )

    def __len__(self) -> int:
        return len(self.widths()[0]) * len(self.centres)

    def widths(self) -> tuple[Tensor, Tensor]:
        """Return the squared widths: a_s for lengths and c_s for midpoints."""
        widths = self.hyperkernel.widths()
        assert widths is not None
        return widths

    def bumps(self, X: Tensor) -> Tensor:
        """Return ``e_sq(x)`` with shape widths x points x centres; one matrix if all widths have the same c."""
        _, c = self.widths()
        x, z = self.hyperkernel.scaled(X), self.hyperkernel.scaled(self.centres)
        return torch.exp(-squared_euclidean(x, z) / (4 * _distinct(c)[:, None, None]))

    def rates(self) -> Tensor:
        """Return ``1/a'_s``, the rates of the falloffs ``exp(-|x - x'|^2/2a'_s)``."""
        a, c = self.widths()
        return 1 / a - 1 / (4 * c)

    def at(self, pairs: PointPairs) -> Tensor:
        lengths = self.hyperkernel.scaled_pairs(pairs).squared_length
        return self.at_bumps(self.bumps(pairs.left) * self.bumps(pairs.right), lengths)

    def at_bumps(self, products: Tensor, lengths: Tensor) -> Tensor:
        """Return the values at pairs, from the products of their points' bumps and from their squared lengths."""
        falloffs = torch.exp(-0.5 * self.rates()[:, None] * lengths)
        return (falloffs[:, :, None] * products).transpose(0, 1).reshape(len(lengths), -1)

    def gram(self) -> Tensor:
        """Return one block for each width: different widths have different spaces, whose norms add up."""
        _, c = self.widths()
        z = self.hyperkernel.scaled(self.centres)
        return torch.block_diag(*torch.exp(-squared_euclidean(z) / (2 * c[:, None, None])))

    def combine(self, w: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Compute by blocks of rows that fit in the cache; falloffs overwrite the distances."""
        if len(self) == 0:
            return X.new_zeros(len(X), len(Z))
        a, c = self.widths()
        left, right = self.bumps(X), self.bumps(Z).transpose(1, 2).contiguous()
        w, rates = w.reshape(len(a), 1, -1), self.rates()
        K = squared_euclidean(self.hyperkernel.scaled(X), self.hyperkernel.scaled(Z))
        n_rows = max(1, CACHE_ENTRIES // len(Z))
        if len(right) > 1 or not _are_cubes(a, c):
            for at in (slice(start, start + n_rows) for start in range(0, len(X), n_rows)):
                falloffs = torch.exp(-0.5 * rates[:, None, None] * K[at])
                K[at] = (falloffs * torch.matmul(left[:, at] * w, right)).sum(0)
            return K
        memory = X.new_empty(len(a) * n_rows, len(Z))  # allocating it in each round would cost as much as the product
        for at in (slice(start, start + n_rows) for start in range(0, len(X), n_rows)):
            weighted = (left[0, at] * w).reshape(-1, len(self.centres))
            products = torch.mm(weighted, right[0], out=memory[: len(weighted)]).reshape(len(a), -1, len(Z))
            cubed_sum(torch.exp(-0.5 * rates[0] * K[at]), products, K[at], work=len(a) * K.numel())
        return K

    def fixed(self) -> MidpointBasis:
        return replace(self, hyperkernel=self.hyperkernel.fixed())


def _are_cubes(a: Tensor, c: Tensor) -> bool:
    """Return whether each falloff is the cube of the last times the first: ``a_(s+1) = a_s/3`` and ``c = 3 a_0/4``."""
    geometric = torch.allclose(a[:-1], 3.0 * a[1:], rtol=1e-9, atol=0.0)
    return geometric and bool(torch.isclose(4.0 * c[0], 3.0 * a[0], rtol=1e-9, atol=0.0))


def _distinct(c: Tensor) -> Tensor:
    """Return a single value if all values are equal and none is being learned."""
    return c[:1] if not c.requires_grad and torch.allclose(c, c[0], rtol=1e-10, atol=0.0) else c


def joined(parts: list[tuple[Basis, Tensor]]) -> tuple[Basis, Tensor]:
    """Join several bases into one, with the weights in its order."""
    bases, weights = zip(*parts, strict=True)
    first = bases[0]
    if isinstance(first, MidpointBasis):  # its functions are ordered by widths, then by centres
        if all(torch.equal(basis.centres, first.centres) for basis in bases):
            return first, torch.stack(weights).sum(0)
        n_widths = len(first.widths()[0])
        basis: Basis = MidpointBasis(first.hyperkernel, torch.cat([basis.centres for basis in bases]))
        return basis, torch.cat([w.reshape(n_widths, -1) for w in weights], 1).reshape(-1)
    pairs = PointPairs(*(torch.cat(halves) for halves in zip(*(basis.pairs for basis in bases), strict=True)))
    return PairBasis(first.hyperkernel, pairs), torch.cat(weights)


def landmarks_among(X: Tensor, size: int, rule: str, seed: int) -> Tensor:
    """Choose landmarks among the points, or cluster centres, by the rule "kmeans", "uniform" or "leverage"."""
    return Nystroem(Gaussian("median"), min(size, len(X)), rule, seed=seed).fit(X).points


def all_pairs_of(hyperkernel: HyperKernel, landmarks: Tensor) -> PairBasis:
    """Return a basis with one function for each pair of landmarks, ``i <= j``."""
    first, second = torch.triu_indices(len(landmarks), len(landmarks))
    return PairBasis(hyperkernel, PointPairs(landmarks[first], landmarks[second]))


def whitening(G: Tensor) -> Tensor:
    """Return T with ``T^T G T = I`` on the numerical range of G, so that weights ``T u`` have norm |u|."""
    values, vectors = eigen(G)
    kept = values > RANK * values[-1]
    return vectors[:, kept] / values[kept].sqrt()
