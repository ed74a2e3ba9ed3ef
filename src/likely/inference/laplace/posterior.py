"""A normal posterior of any network's parameters, with predictions by the network's linearisation at the mean.

    η | x ~ Normal(η(x; θ̂), J(x) Σ J(x)ᵀ),      p(y | x) = ∫ p(y | η) p(η | x) dη      J = ∂η/∂θ at θ̂

Σ comes from the curvature of that linear model, so it is its own posterior; a network at a draw θ far from θ̂ is
another function, which is why members drawn from Σ predict worse. They can be had by `draw`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Normal

from ...core.errors import ModelFileError
from ...core.gradients import following
from ...data.rows import Inputs
from ...networks.jacobian import Jacobian
from ...probability.roots import symmetric_root
from ..posterior import Posterior, average, check_draws
from .blocks import Block, Dense, Diagonal, Layer

__all__ = ["LaplacePosterior"]

BLOCKS: dict[str, type[Block]] = {"dense": Dense, "diagonal": Diagonal, "layer": Layer}
KINDS = {made: kind for kind, made in BLOCKS.items()}
PARTS = {"dense": {"root"}, "diagonal": {"scale"}, "layer": {"left", "right", "scale"}}

NODES = 32
"""Nodes of Gauss-Hermite quadrature beyond which more change nothing."""


class LaplacePosterior(Posterior):
    """One member, the mean θ̂, and a root of the covariance of its parameters, in blocks."""

    kind = "laplace"
    extra = ("blocks",)
    blocks: tuple[Block, ...] = ()

    @classmethod
    def around(cls, mean: Posterior, blocks: Sequence[Block], info: Mapping[str, Any]) -> LaplacePosterior:
        """Centred at the one member of a posterior."""
        made = cls(mean.module, mean.parameters, mean.buffers, mean.weights, info)
        made.blocks = tuple(blocks)
        return made

    def draw(self, count: int, generator: torch.Generator | None = None) -> Posterior:
        """`count` parameter vectors from Normal(θ̂, Σ), as members of equal weight."""
        members = {name: value.expand(count, *value.shape[1:]).clone() for name, value in self.parameters.items()}
        shapes = {name: value.shape[1:] for name, value in self.parameters.items()}
        for block in self.blocks:
            for name, change in block.moved(shapes, count, generator).items():
                members[name] += change
        buffers = {name: value.expand(count, *value.shape[1:]).clone() for name, value in self.buffers.items()}
        return Posterior(self.module, members, buffers)

    def eta_moments(self, x: Inputs) -> tuple[Tensor, Tensor]:
        """Mean (n, *positions, size) and covariance (n, *positions, size, size) of η of each row."""
        with following(x):
            return self._eta_moments(x)

    def _eta_moments(self, x: Inputs) -> tuple[Tensor, Tensor]:
        names = tuple(name for block in self.blocks for name in block.names)
        means, covariances = [], []
        with self.lent() as module:
            for _, eta, jacobian in Jacobian(module, names).blocks(self.cast(x)):
                rows = {name: value.flatten(0, 1) for name, value in jacobian.items()}
                total = eta.new_zeros(*eta.shape, eta.shape[-1])
                for block in self.blocks:
                    root = block.times(rows).reshape(*eta.shape, -1)
                    total += root @ root.mT
                means.append(eta)
                covariances.append(total)
        return torch.cat(means), torch.cat(covariances)

    def predictive(self, likelihood: Any, x: Inputs) -> Distribution:
        """p(y | x, data): closed form for normal noise of known scale, else an average over fixed points of η."""
        with following(x):
            return self._predictive(likelihood, x)

    def _predictive(self, likelihood: Any, x: Inputs) -> Distribution:
        mean, covariance = self.eta_moments(x)
        if likelihood.least_squares and likelihood.known_scale() is not None:
            plain = likelihood.distribution(mean)
            spread = plain.variance + covariance[..., 0, 0].reshape(plain.mean.shape)
            return Normal(plain.mean, spread.sqrt(), validate_args=False)
        nodes, weights = _nodes(mean.shape[-1], int(self.info["draws"]))
        root = symmetric_root(covariance)  # continuous in x, as eigenvectors are not
        eta = torch.stack([mean + root @ node for node in nodes.to(mean)])
        return average(likelihood, eta, weights)

    # --- files --------------------------------------------------------------------------------------------------
    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super().state()
        learned["blocks"] = [{"kind": KINDS[type(block)], "names": list(block.names)} for block in self.blocks]
        for number, block in enumerate(self.blocks):
            tensors |= {f"blocks.{number}.{name}": value for name, value in block.tensors.items()}
        return learned, tensors

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        made = super().restore(module, learned, tensors)
        assert isinstance(made, cls)
        shapes = {name: value.shape[1:] for name, value in made.parameters.items()}
        blocks = []
        for number, entry in enumerate(learned["blocks"]):
            own = {name: tensors.get(f"blocks.{number}.{name}") for name in PARTS.get(entry["kind"], {"unknown"})}
            names = tuple(entry["names"])
            sound = all(value is not None and value.dtype == made.dtype for value in own.values())
            if not sound or not set(names) <= set(shapes):
                raise ModelFileError("The file does not fit its own specs: its covariance is not that of its network.")
            block = BLOCKS[entry["kind"]](names, own)  # type: ignore[arg-type]
            if not block.fits(shapes):
                raise ModelFileError("The file does not fit its own specs: its covariance has another shape.")
            blocks.append(block)
        check_draws(learned["info"])
        if len(made) != 1:
            raise ModelFileError("The file does not fit its own specs: it needs one mean.")
        made.blocks = tuple(blocks)
        return made


def _nodes(size: int, count: int) -> tuple[Tensor, Tensor]:
    """Points (k, size) and weights (k,) that stand for a standard normal vector.

    One number: Gauss-Hermite. More: quasi-random points and their mirror images, with mean 0 and covariance I exactly,
    or, where there are fewer pairs than numbers, variances of 1.
    """
    if size == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(min(count, NODES))
        return torch.from_numpy(nodes).unsqueeze(1), torch.from_numpy(weights / weights.sum())
    half = torch.quasirandom.SobolEngine(size, scramble=True, seed=0).draw((count + 1) // 2, dtype=torch.float64)
    points = torch.special.ndtri(half.clamp(1e-9, 1 - 1e-9))
    if len(points) < size:
        points = points / points.square().mean(0).sqrt().clamp_min(1e-9)
    else:  # the closest points to these whose second moments are I
        left, _, right = torch.linalg.svd(points, full_matrices=False)
        points = left @ right * len(points) ** 0.5
    return torch.cat([points, -points]), torch.full((2 * len(points),), 0.5 / len(points), dtype=torch.float64)
