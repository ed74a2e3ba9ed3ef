"""A normal distribution of parameters, and the posterior of a linear model: what is unknown of θ, in closed form.

η | x ~ Normal(x̃ᵀθ̂, x̃ᵀΣx̃),   so   y | x ~ Normal(x̃ᵀθ̂, σ² + x̃ᵀΣx̃)      with x̃ = [x, 1]

Where σ was learned it is integrated out too: y | x ~ StudentT(ν, x̃ᵀθ̂, √(σ² + x̃ᵀΣx̃)), with ν the targets less the
parameters that they pin down. With flat weights and p(σ) ∝ 1/σ this is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal, Normal

from ..core.errors import ModelFileError
from ..core.files import check_tensors
from ..core.gradients import following
from ..core.layout import laid_out
from ..likelihoods.student_t import StableStudentT
from .posterior import Posterior

__all__ = ["Gaussian", "GaussianPosterior"]


@dataclass(frozen=True)
class Gaussian:
    """Normal(mean, diag(scale²) + factor factorᵀ) of parameters; either part of the covariance may be absent.

    `mean` and `scale` are (…, d), `factor` (…, d, k): leading axes are independent vectors.

    >>> Gaussian(torch.zeros(2), torch.ones(2), torch.tensor([[1.0], [0.0]])).covariance()
    tensor([[2., 0.],
            [0., 1.]])
    """

    mean: Tensor
    scale: Tensor | None = None
    factor: Tensor | None = None

    def covariance(self) -> Tensor:
        """The covariance matrix (…, d, d)."""
        diagonal = torch.zeros_like(self.mean) if self.scale is None else self.scale.square()
        matrix = torch.diag_embed(diagonal)
        return matrix if self.factor is None else matrix + self.factor @ self.factor.mT

    def variance(self) -> Tensor:
        """Its diagonal (…, d)."""
        diagonal = torch.zeros_like(self.mean) if self.scale is None else self.scale.square()
        return diagonal if self.factor is None else diagonal + self.factor.square().sum(-1)

    def log_prob(self, theta: Tensor) -> Tensor:
        """The log-density at (…, d), of a covariance that is not singular."""
        if self.factor is None and self.scale is not None:
            return Normal(self.mean, self.scale).log_prob(theta).sum(-1)
        return MultivariateNormal(self.mean, self.covariance()).log_prob(theta)

    def draw(self, count: int, generator: torch.Generator | None, *, mirrored: bool = False) -> Tensor:
        """`count` draws (count, …, d), differentiable in mean, scale and factor.

        `mirrored`: the second half mirrors the first, so that their mean is the mean.
        """
        half, shape = (count + 1) // 2 if mirrored else count, self.mean.shape
        moved = self.mean.new_zeros(half, *shape)
        if self.scale is not None:
            moved = moved + self._noise(generator, half, *shape) * self.scale
        if self.factor is not None:
            noise = self._noise(generator, half, *shape[:-1], self.factor.shape[-1])
            many = self.factor.ndim > 2
            moved = moved + ((self.factor @ noise.unsqueeze(-1)).squeeze(-1) if many else noise @ self.factor.T)
        moved = torch.cat([moved, -moved])[:count] if mirrored else moved
        return self.mean + moved

    def _noise(self, generator: torch.Generator | None, *shape: int) -> Tensor:
        return torch.randn(*shape, dtype=self.mean.dtype, generator=generator).to(self.mean.device)


class GaussianPosterior(Posterior):
    """One member, the mean, and the covariance (outputs, p, p) of [weight, bias] of each output.

    `degrees` (outputs,) are the degrees of freedom that σ was learned from; ∞ where it is known. Draws are of the
    weights, given σ.
    """

    kind = "gaussian"
    extra = ("covariance", "degrees")
    covariance: Tensor
    degrees: Tensor

    @classmethod
    def around(
        cls, module: nn.Module, covariance: Tensor, degrees: Tensor, info: Mapping[str, Any]
    ) -> GaussianPosterior:
        """Centred at the parameters that the module has now."""
        made = cls.of(module, info=info)
        assert isinstance(made, cls)
        made.covariance, made.degrees = laid_out(covariance), laid_out(degrees)
        return made

    def draw(self, count: int, generator: torch.Generator | None = None) -> Posterior:
        """`count` parameter vectors from the posterior, as members of equal weight."""
        weight, bias = self.parameters["network.weight"][0], self.parameters.get("network.bias")
        mean = weight if bias is None else torch.cat([weight, bias[0].unsqueeze(-1)], 1)  # (outputs, p)
        values, vectors = torch.linalg.eigh(self.covariance)
        root = vectors * values.clamp_min(0).sqrt().unsqueeze(-2) @ vectors.mT  # does not turn with the eigenvectors
        draws = Gaussian(mean, factor=root).draw(count, generator)
        members = {name: value.expand(count, *value.shape[1:]).clone() for name, value in self.parameters.items()}
        members["network.weight"] = draws[..., : weight.shape[1]]
        if bias is not None:
            members["network.bias"] = draws[..., -1]
        buffers = {name: value.expand(count, *value.shape[1:]).clone() for name, value in self.buffers.items()}
        return Posterior(self.module, members, buffers)

    def predictive(self, likelihood: Any, x: Any) -> Distribution:
        """Normal with the variance of the noise and of η, or Student's t where σ was learned."""
        with following(x):
            return self._predictive(likelihood, x)

    def _predictive(self, likelihood: Any, x: Any) -> Distribution:
        plain = likelihood.distribution(self.eta(x)[0])
        rows = x.to(self.dtype)
        rows = rows.flatten(1) if self.module.flatten else rows
        if "network.bias" in self.parameters:
            rows = torch.cat([rows, torch.ones_like(rows[..., :1])], -1)
        variance = torch.einsum("...i,kij,...j->...k", rows, self.covariance, rows).clamp_min(0)
        degrees = self.degrees.expand_as(variance).reshape(plain.mean.shape)
        scale = (plain.variance + variance.reshape(plain.mean.shape)).sqrt()
        if bool(self.degrees.isinf().any()):
            return Normal(plain.mean, scale, validate_args=False)
        return StableStudentT(degrees, plain.mean, scale, validate_args=False)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super().state()
        return learned, tensors | {"covariance": self.covariance, "degrees": self.degrees}

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        made = super().restore(module, learned, tensors)
        assert isinstance(made, cls)
        weight = made.parameters["network.weight"]
        size = weight.shape[2] + ("network.bias" in made.parameters)
        shapes = {"covariance": (weight.shape[1], size, size), "degrees": (weight.shape[1],)}
        check_tensors(shapes, {name: tensors[name] for name in shapes})
        if not bool((tensors["degrees"] > 0).all()):  # infinite where σ is known
            raise ModelFileError("The file does not fit its own specs: degrees must be above 0.")
        made.covariance, made.degrees = (tensors[name].to(made.dtype) for name in shapes)
        return made
