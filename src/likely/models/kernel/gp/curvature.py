"""What targets say about latent functions, as curvature: the matrix that Laplace's approximation is made of.

    M = (K ⊗ I + W⁻¹)⁻¹ = W½ B⁻¹ W½,   B = I + W½ (K ⊗ I) W½

W (n, k, k) is the information −∂² log p(yᵢ | fᵢ) of each row about its k latent numbers, which may be singular, so that
its inverse is never taken. For labels with softmax probabilities p, W = diag p − ppᵀ, and n × n matrices suffice:

    M_cd = [c = d] E_c − E_c S⁻¹ E_d,   E_c = (K + diag(p_c)⁻¹)⁻¹,   S = Σ_c E_c
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ....kernels.cholesky import COARSE, ROUGHER, cholesky, inverse_of

__all__ = ["Blocks", "Curvature", "Softmax", "curvature_of"]


class Curvature(Protocol):
    """M as an operator on k functions at n rows."""

    @property
    def log_det(self) -> float:
        """log|B|."""

    def apply(self, values: Tensor) -> Tensor:
        """M v of v (n, k)."""

    def blocks(self, cross: Tensor) -> Tensor:
        """cᵀ M c for each column c of cross (n, m): (m, k, k)."""

    def joint(self, cross: Tensor) -> Tensor:
        """CᵀMC of C = cross ⊗ I: (m·k, m·k), the k numbers of a row together."""

    def trace(self) -> Tensor:
        """Σ_c M_cc (n, n)."""


def curvature_of(kernel: Tensor, information: Tensor, probability: Tensor | None, weight: Tensor) -> Curvature:
    """The cheaper form where the information is that of a softmax with these probabilities, else the one for all."""
    if probability is not None and probability.shape[-1] == information.shape[-1] > 1:
        outer = probability.unsqueeze(-1) * probability.unsqueeze(-2)
        softmax = weight.reshape(-1, 1, 1) * (torch.diag_embed(probability) - outer)
        if torch.allclose(softmax, information, rtol=1e-9, atol=1e-12):
            return Softmax.of(kernel, probability, weight)
    return Blocks.of(kernel, information)


@dataclass(frozen=True)
class Blocks:
    """Any information: B is one matrix (n·k, n·k)."""

    root: Tensor  # W½ (n, k, k), symmetric
    factor: Tensor  # LLᵀ = B

    @staticmethod
    def of(kernel: Tensor, information: Tensor) -> Blocks:
        """For K (n, n) and W (n, k, k)."""
        n, k = information.shape[:2]
        if k == 1:
            root = information.clamp_min(0).sqrt()
            scaled = kernel * root.reshape(-1, 1) * root.reshape(-1)
        else:
            values, vectors = torch.linalg.eigh(information)
            root = (vectors * values.clamp_min(0).sqrt().unsqueeze(-2)) @ vectors.mT
            scaled = torch.einsum("icd,jde->icje", root, root).mul_(kernel[:, None, :, None]).reshape(n * k, n * k)
        scaled.diagonal().add_(1.0)
        return Blocks(root, cholesky(scaled, ROUGHER, COARSE, zeros=True)[0])

    @property
    def log_det(self) -> float:
        return 2 * float(self.factor.diagonal().log().sum())

    def apply(self, values: Tensor) -> Tensor:
        n, k = values.shape
        inner = (self.root @ values.unsqueeze(-1)).reshape(n * k, 1)
        return (self.root @ torch.cholesky_solve(inner, self.factor).reshape(n, k, 1)).squeeze(-1)

    def blocks(self, cross: Tensor) -> Tensor:
        half = self._half(cross)
        return torch.einsum("amc,amd->mcd", half, half)

    def joint(self, cross: Tensor) -> Tensor:
        half = self._half(cross).flatten(1)
        return half.mT @ half

    def trace(self) -> Tensor:
        n, k = self.root.shape[:2]
        inverse = inverse_of(self.factor)
        if k == 1:
            return inverse * self.root.reshape(-1, 1) * self.root.reshape(-1)
        return torch.einsum("icd,idje,jec->ij", self.root, inverse.reshape(n, k, n, k), self.root)

    def _half(self, cross: Tensor) -> Tensor:
        """L⁻¹ W½ (cross ⊗ I): (n·k, m, k)."""
        n, k = self.root.shape[:2]
        right = torch.einsum("icd,im->icmd", self.root, cross).reshape(n * k, -1)
        return torch.linalg.solve_triangular(self.factor, right, upper=False).reshape(n * k, -1, k)


@dataclass(frozen=True)
class Softmax:
    """Information diag p − ppᵀ, times the weight of a row."""

    parts: Tensor  # E (k, n, n)
    factor: Tensor  # LLᵀ = S
    log_det: float

    @staticmethod
    def of(kernel: Tensor, probability: Tensor, weight: Tensor) -> Softmax:
        """For K (n, n), p (n, k) and weights (n,)."""
        parts, log_det = [], -float(weight.log().sum())
        for column in (probability * weight.unsqueeze(-1)).unbind(-1):
            root = column.sqrt()
            scaled = kernel * root.unsqueeze(-1) * root
            scaled.diagonal().add_(1.0)
            factor = cholesky(scaled, ROUGHER, COARSE, zeros=True)[0]
            log_det += 2 * float(factor.diagonal().log().sum())
            parts.append(inverse_of(factor) * root.unsqueeze(-1) * root)
        together = torch.stack(parts)
        factor = cholesky(together.sum(0), ROUGHER, COARSE, zeros=True)[0]
        return Softmax(together, factor, log_det + 2 * float(factor.diagonal().log().sum()))

    def apply(self, values: Tensor) -> Tensor:
        own = (self.parts @ values.mT.unsqueeze(-1)).squeeze(-1)  # (k, n)
        shared = torch.cholesky_solve(own.sum(0).unsqueeze(-1), self.factor)
        return (own - (self.parts @ shared).squeeze(-1)).mT

    def blocks(self, cross: Tensor) -> Tensor:
        own, half = self._halves(cross)
        diagonal = torch.einsum("nm,cnm->mc", cross, own)
        return torch.diag_embed(diagonal) - torch.einsum("cnm,dnm->mcd", half, half)

    def joint(self, cross: Tensor) -> Tensor:
        own, half = self._halves(cross)
        k, m = len(own), cross.shape[1]
        together = -torch.einsum("cna,dnb->acbd", half, half)
        alone = torch.einsum("na,cnb->abc", cross, own)
        together.diagonal(dim1=1, dim2=3).add_(alone)
        return together.reshape(m * k, m * k)

    def trace(self) -> Tensor:
        total = self.parts.sum(0)
        for part in self.parts:
            half = torch.linalg.solve_triangular(self.factor, part, upper=False)
            total -= half.mT @ half
        return total

    def _halves(self, cross: Tensor) -> tuple[Tensor, Tensor]:
        """E_c C and L⁻¹ E_c C, of each class: (k, n, m)."""
        own = self.parts @ cross
        return own, torch.linalg.solve_triangular(self.factor.expand_as(self.parts), own, upper=False)
