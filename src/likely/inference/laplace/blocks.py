"""Normal(θ̂, Σ) of a network's parameters as independent blocks, each a root R of its part of Σ = RRᵀ.

    dense       R = L⁻ᵀ,  H = LLᵀ
    diagonal    R = diag(h)^(−1/2)
    layer       R = (U ⊗ V) diag(s),  s = λ^(−1/2)        for [W, b] of a linear layer, H ≈ A ⊗ G + P ⊗ I

Directions without curvature (λ = 0) have no column in R: what neither the data nor the prior determines stays at θ̂.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ...core.layout import laid_out
from ..gaussian import Gaussian
from ..parameters import FlatParameters

__all__ = ["Block", "Dense", "Diagonal", "Layer", "dense", "diagonal", "layer"]

FLAT = 1e-12
"""Curvature, as a fraction of the largest after scaling to a unit diagonal, that cannot be told from none."""


@dataclass(frozen=True)
class Block:
    """A root of the covariance of the parameters `names`, and what H was: its log-determinant and rank."""

    names: tuple[str, ...]
    tensors: dict[str, Tensor]
    log_det: float = 0.0
    rank: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        own = {name: laid_out(value) for name, value in self.tensors.items()}
        object.__setattr__(self, "tensors", own)

    def times(self, jacobian: Mapping[str, Tensor]) -> Tensor:
        """J R, for rows J (m, *shape) of each parameter: (m, k)."""
        raise NotImplementedError

    def moved(self, shapes: Mapping[str, torch.Size], count: int, random: torch.Generator | None) -> dict[str, Tensor]:
        """`count` draws of θ − θ̂, as named parameters (count, *shape)."""
        raise NotImplementedError

    def fits(self, shapes: Mapping[str, torch.Size]) -> bool:
        """Whether the tensors suit parameters of these shapes."""
        raise NotImplementedError


class Dense(Block):
    """All entries of Σ: one matrix `root` (d, rank)."""

    def times(self, jacobian: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([jacobian[name].flatten(1) for name in self.names], 1) @ self.tensors["root"]

    def moved(self, shapes: Mapping[str, torch.Size], count: int, random: torch.Generator | None) -> dict[str, Tensor]:
        root = self.tensors["root"]
        return _named(Gaussian(root.new_zeros(len(root)), factor=root).draw(count, random), self.names, shapes)

    def fits(self, shapes: Mapping[str, torch.Size]) -> bool:
        root = self.tensors["root"]
        return root.ndim == 2 and root.shape[0] == sum(shapes[name].numel() for name in self.names)


class Diagonal(Block):
    """Independent parameters: one vector `scale` (d,)."""

    def times(self, jacobian: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([jacobian[name].flatten(1) for name in self.names], 1) * self.tensors["scale"]

    def moved(self, shapes: Mapping[str, torch.Size], count: int, random: torch.Generator | None) -> dict[str, Tensor]:
        scale = self.tensors["scale"]
        return _named(Gaussian(torch.zeros_like(scale), scale).draw(count, random), self.names, shapes)

    def fits(self, shapes: Mapping[str, torch.Size]) -> bool:
        return self.tensors["scale"].shape == (sum(shapes[name].numel() for name in self.names),)


class Layer(Block):
    """A linear layer's [W, b] (out, in): `left` V (out, out), `right` U (in, k) and `scale` (out, k)."""

    def times(self, jacobian: Mapping[str, Tensor]) -> Tensor:
        weight = jacobian[self.names[0]]  # (m, out, in)
        if len(self.names) > 1:
            weight = torch.cat([weight, jacobian[self.names[1]].unsqueeze(-1)], -1)
        turned = self.tensors["left"].T @ weight @ self.tensors["right"]
        return (turned * self.tensors["scale"]).flatten(1)

    def moved(self, shapes: Mapping[str, torch.Size], count: int, random: torch.Generator | None) -> dict[str, Tensor]:
        scale = self.tensors["scale"]
        weight = self.tensors["left"] @ (_noise(random, scale, count, *scale.shape) * scale) @ self.tensors["right"].T
        if len(self.names) == 1:
            return {self.names[0]: weight}
        return {self.names[0]: weight[..., :-1], self.names[1]: weight[..., -1]}

    def fits(self, shapes: Mapping[str, torch.Size]) -> bool:
        out, width = shapes[self.names[0]]
        left, right, scale = (self.tensors[name] for name in ("left", "right", "scale"))
        wide = right.ndim == 2 and len(right) == width + len(self.names) - 1
        return wide and left.shape == (out, out) and scale.shape == (out, right.shape[1])


def dense(names: tuple[str, ...], hessian: Tensor) -> Dense:
    """The root of H⁻¹ by Cholesky where H is regular, else by eigenvectors without the flat ones."""
    unit = hessian.diagonal().clamp_min(0).sqrt()
    unit = torch.where(unit > 0, unit, 1.0)
    scaled = hessian / torch.outer(unit, unit)
    lower, failed = torch.linalg.cholesky_ex(scaled)
    if not failed and bool((lower.diagonal().square() > FLAT).all()):
        eye = torch.eye(len(hessian), dtype=hessian.dtype, device=hessian.device)
        root = torch.linalg.solve_triangular(lower.T, eye, upper=True) / unit.unsqueeze(1)
        log_det = 2 * float(lower.diagonal().log().sum() + unit.log().sum())
        return Dense(names, {"root": root}, log_det, len(hessian), len(hessian))
    values, vectors = torch.linalg.eigh(scaled)
    kept = values > FLAT * values[-1].clamp_min(1e-300)
    root = vectors[:, kept] * values[kept].rsqrt() / unit.unsqueeze(1)
    return Dense(names, {"root": root}, -_log_gram(root), int(kept.sum()), len(hessian))


def diagonal(names: tuple[str, ...], curvature: Tensor) -> Diagonal:
    """The root of diag(h)⁻¹, 0 where h is."""
    kept = curvature > 0
    scale = torch.where(kept, curvature.clamp_min(1e-300).rsqrt(), 0.0)
    log_det = float(curvature[kept].log().sum())
    return Diagonal(names, {"scale": scale}, log_det, int(kept.sum()), len(curvature))


def layer(names: tuple[str, ...], inputs: Tensor, outputs: Tensor, prior: Tensor) -> Layer:
    """The root of (A ⊗ G + P ⊗ I)⁻¹: `inputs` A (in, in), `outputs` G (out, out), `prior` diag P (in,).

    A and P have one basis T in which both are diagonal, A = T(1 − D)Tᵀ and P/c = TDTᵀ; with G = V diag(g) Vᵀ the
    eigenvalues are λ = (1 − D)g + cD. The unit c makes A and P/c alike in size.
    """
    c = float(prior.mean() / inputs.diagonal().mean()) if bool(prior.any()) and bool(inputs.any()) else 1.0
    both = inputs + torch.diag(prior / c)
    unit = both.diagonal().clamp_min(0).sqrt()
    unit = torch.where(unit > 0, unit, 1.0)
    m, basis = torch.linalg.eigh(both / torch.outer(unit, unit))
    kept = m > FLAT * m[-1].clamp_min(1e-300)
    half = basis[:, kept] * m[kept].rsqrt() / unit.unsqueeze(1)  # halfᵀ (A + P/c) half = 1
    fraction, turn = torch.linalg.eigh(half.T @ torch.diag(prior / c) @ half)
    fraction = fraction.clamp(0, 1)
    right = half @ turn
    g, left = torch.linalg.eigh(outputs)
    values = g.clamp_min(0).unsqueeze(1) * (1 - fraction) + c * fraction  # (out, k)
    there = values > FLAT * values.max().clamp_min(1e-300)
    scale = torch.where(there, values.clamp_min(1e-300).rsqrt(), 0.0)
    log_det = float(values[there].log().sum()) - len(outputs) * _log_gram(right)
    size = len(outputs) * len(inputs)
    return Layer(names, {"left": left, "right": right, "scale": scale}, log_det, int(there.sum()), size)


def _log_gram(root: Tensor) -> float:
    """log det RᵀR, the squared volume that the columns span: −log of H's determinant on the directions kept."""
    return 2 * float(torch.linalg.svdvals(root).log().sum())


def _named(flat: Tensor, names: tuple[str, ...], shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    return FlatParameters({name: tuple(shapes[name]) for name in names}).named(flat)


def _noise(random: torch.Generator | None, like: Tensor, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=like.dtype, generator=random).to(like.device)
