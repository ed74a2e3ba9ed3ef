"""A normal posterior of a linear model's parameters: predictions include what is unknown of θ, in closed form.

η | x ~ Normal(x̃ᵀθ̂, x̃ᵀΣx̃),   so   y | x ~ Normal(x̃ᵀθ̂, σ² + x̃ᵀΣx̃)      with x̃ = [x, 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Normal

from ..core.files import check_tensors
from ..core.layout import laid_out
from .posterior import Posterior

__all__ = ["GaussianPosterior"]


class GaussianPosterior(Posterior):
    """One member, the mean, and the covariance (outputs, p, p) of [weight, bias] of each output."""

    kind = "gaussian"
    extra = ("covariance",)
    covariance: Tensor

    @classmethod
    def around(cls, module: nn.Module, covariance: Tensor, info: Mapping[str, Any]) -> GaussianPosterior:
        """Centred at the parameters that the module has now."""
        made = cls.of(module, info=info)
        assert isinstance(made, cls)
        made.covariance = laid_out(covariance)
        return made

    def draw(self, count: int, generator: torch.Generator | None = None) -> Posterior:
        """`count` parameter vectors from the posterior, as members of equal weight."""
        weight, bias = self.parameters["network.weight"][0], self.parameters.get("network.bias")
        mean = weight if bias is None else torch.cat([weight, bias[0].unsqueeze(-1)], 1)  # (outputs, p)
        values, vectors = torch.linalg.eigh(self.covariance)
        root = vectors * values.clamp_min(0).sqrt().unsqueeze(-2)
        noise = torch.randn(count, *mean.shape, 1, dtype=mean.dtype, generator=generator)
        draws = mean + (root @ noise).squeeze(-1)
        members = {name: value.expand(count, *value.shape[1:]).clone() for name, value in self.parameters.items()}
        members["network.weight"] = draws[..., : weight.shape[1]]
        if bias is not None:
            members["network.bias"] = draws[..., -1]
        buffers = {name: value.expand(count, *value.shape[1:]).clone() for name, value in self.buffers.items()}
        return Posterior(self.module, members, buffers)

    @torch.no_grad()
    def predictive(self, likelihood: Any, x: Any) -> Distribution:
        """Normal with the variance of the noise and of η."""
        plain = likelihood.distribution(self.eta(x)[0])
        rows = x.to(self.dtype)
        rows = rows.flatten(1) if self.module.flatten else rows
        if "network.bias" in self.parameters:
            rows = torch.cat([rows, torch.ones_like(rows[..., :1])], -1)
        variance = torch.einsum("...i,kij,...j->...k", rows, self.covariance, rows).clamp_min(0)
        variance = variance.reshape(plain.mean.shape)
        return Normal(plain.mean, (plain.variance + variance).sqrt(), validate_args=False)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super().state()
        return learned, tensors | {"covariance": self.covariance}

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        made = super().restore(module, learned, tensors)
        assert isinstance(made, cls)
        weight = made.parameters["network.weight"]
        size = weight.shape[2] + ("network.bias" in made.parameters)
        check_tensors({"covariance": (weight.shape[1], size, size)}, {"covariance": tensors["covariance"]})
        made.covariance = tensors["covariance"].to(made.dtype)
        return made
