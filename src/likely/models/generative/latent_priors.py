"""p(z), the distribution of a code before a row is seen.

    Normal()      z ~ N(0, I)
    Mixture(K)    z ~ Σ_c π_c N(μ_c, Σ_c), learned: with it a VAE clusters (VaDE)
    Flow(layers)  z = f⁻¹(u), u ~ N(0, I), with f an invertible network, learned

log p(z) at draws serves every bound. Where a closed form is at hand, `log_ratio` is E_q[log p(z) − log q(z)] (for a
mixture a lower bound on it, by Jensen's inequality in the component), and saves the noise of the draws.
"""

from __future__ import annotations

from typing import Literal, Self

import torch
from torch import Tensor, nn

from ...core.random import current_generator
from ...core.spec import Spec, as_spec, is_among, is_integer, require
from ...data.augment import Augment
from ...likelihoods.special import LOG_2PI
from ...networks import MLP
from .normals import noise, to_standard
from .transforms import Affine, stack

__all__ = ["Flow", "LatentPrior", "Mixture", "Normal", "PriorModule"]

STEPS, BATCH = 3_000, 128
"""Steps of plain autoencoding before the fit of a mixture, more or less, and the rows of one."""
STEEPEST = 3.0
"""The largest log a_ii of a component's precision AᵀA: |Σ_c| has a floor, so none can shrink onto one code."""


class PriorModule(nn.Module):
    """p(z) of codes of so many numbers."""

    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z), without the last axis."""
        raise NotImplementedError

    def log_ratio(self, mean: Tensor, log_scale: Tensor) -> Tensor | None:
        """E[log p(z) − log q(z)] for z ~ q = N(mean, e^log_scale) (or a bound on it); None without a closed form."""
        return None

    def sample(self, count: int, like: Tensor) -> Tensor:
        """New codes, (count, latent), of the dtype and on the device of `like`."""
        raise NotImplementedError


class LatentPrior(Spec, axis="latent_prior"):
    """What is believed of a code."""

    def build(self, latent: int) -> PriorModule:
        """Its module for codes of so many numbers."""
        raise NotImplementedError


class Normal(LatentPrior):
    """z ~ N(0, I).

    >>> Normal().build(2).log_prob(torch.zeros(1, 2))
    tensor([-1.8379])
    """

    def build(self, latent: int) -> PriorModule:
        return _Standard(latent)


class Mixture(LatentPrior):
    """z ~ Σ_c π_c N(μ_c, Σ_c), learned with the rest; `covariance` is "full" or "diag" as in `GaussianMixture`.

    Training starts after `pretrain` epochs of plain autoencoding ("auto": about 3,000 steps), from a Gaussian mixture
    of the codes so far: components that start in the same place would never part. Groups of such codes are long in
    directions of their own: on digits a full covariance finds many more of them than a diagonal one.

    `corrupt` is an augmentation that leaves the group of a row as it is, such as `Rotate() + Crop()` of images: before
    the fit the encoder reads corrupted rows, from whose codes the rows themselves are reconstructed, so that codes hold
    little of what it changes.

    >>> Mixture(3).build(2).log_prob(torch.zeros(5, 2)).shape
    torch.Size([5])
    """

    components: int = 10
    pretrain: int | Literal["auto"] = "auto"
    covariance: Literal["full", "diag"] = "full"
    corrupt: Augment | None = None

    @classmethod
    def example(cls) -> Self:
        return cls(2, pretrain=1)

    def validate(self) -> None:
        require(is_integer(self.components), self, "components", "a positive integer")
        known = self.pretrain == "auto" or is_integer(self.pretrain)
        require(known, self, "pretrain", 'a positive number of epochs or "auto"')
        if self.corrupt is not None:
            object.__setattr__(self, "corrupt", as_spec(self.corrupt, Augment, "corrupt"))
        require(is_among(self.covariance, ("full", "diag")), self, "covariance", '"full" or "diag"')

    def epochs_before(self, rows: int) -> int:
        """Epochs of plain autoencoding for so many rows.

        >>> Mixture(3).epochs_before(10_000), Mixture(3, pretrain=5).epochs_before(10_000)
        (38, 5)
        """
        return max(20, min(300, STEPS * BATCH // max(1, rows))) if self.pretrain == "auto" else self.pretrain

    def build(self, latent: int) -> PriorModule:
        return MixtureModule(self.components, latent, full=self.covariance == "full")


class Flow(LatentPrior):
    """z = f⁻¹(u), u ~ N(0, I): `layers` affine couplings whose networks have `hidden` units.

    >>> Flow(2).build(3).sample(4, torch.zeros(1)).shape
    torch.Size([4, 3])
    """

    layers: int = 4
    hidden: int = 64

    @classmethod
    def example(cls) -> Self:
        return cls(layers=2, hidden=4)

    def validate(self) -> None:
        require(is_integer(self.layers), self, "layers", "a positive integer")
        require(is_integer(self.hidden), self, "hidden", "a positive integer")

    def build(self, latent: int) -> PriorModule:
        return _Flowing(latent, self.layers, self.hidden)


class _Standard(PriorModule):
    def __init__(self, latent: int) -> None:
        super().__init__()
        self.latent = latent

    def log_prob(self, z: Tensor) -> Tensor:
        return -0.5 * (z.square().sum(-1) + LOG_2PI * z.shape[-1])

    def log_ratio(self, mean: Tensor, log_scale: Tensor) -> Tensor:
        return -to_standard(mean, log_scale)

    def sample(self, count: int, like: Tensor) -> Tensor:
        return noise(count, self.latent, like=like)


class MixtureModule(PriorModule):
    """Σ_c π_c N(μ_c, (A_cᵀ A_c)⁻¹) with A_c lower triangular, and what clustering asks: `responsibilities`."""

    def __init__(self, components: int, latent: int, *, full: bool = False) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(components))
        self.mean = nn.Parameter(torch.randn(components, latent))
        self.log_diagonal = nn.Parameter(torch.zeros(components, latent))
        self.below = nn.Parameter(torch.zeros(components, latent, latent)) if full else None

    @torch.no_grad()
    def start(self, weights: Tensor, means: Tensor, covariances: Tensor) -> None:
        """Begin at a mixture that was found otherwise; covariances are (components, latent, latent)."""
        if self.below is None:
            covariances = torch.diag_embed(covariances.diagonal(dim1=-2, dim2=-1))
        factors = lower_of_precision(covariances)
        diagonal = factors.diagonal(dim1=-2, dim2=-1)
        self.logits.copy_(weights.clamp_min(1e-6).log())
        self.mean.copy_(means)
        self.log_diagonal.copy_(diagonal.log().clamp_max(STEEPEST))
        if self.below is not None:
            self.below.copy_(factors.tril(-1))

    def factors(self) -> Tensor:
        """A_c, (components, latent, latent)."""
        diagonal = torch.diag_embed(self._log_diagonal().exp())
        return diagonal if self.below is None else diagonal + self.below.tril(-1)

    def _log_diagonal(self) -> Tensor:
        return self.log_diagonal.clamp_max(STEEPEST)

    def _log_weights(self) -> Tensor:
        return torch.log_softmax(self.logits, -1)

    def _log_parts(self, z: Tensor, factors: Tensor) -> Tensor:
        """log π_c + log N(z; μ_c, Σ_c), (…, components)."""
        gap = torch.einsum("cij,...cj->...ci", factors, z.unsqueeze(-2) - self.mean)
        level = self._log_weights() + self._log_diagonal().sum(-1) - 0.5 * LOG_2PI * z.shape[-1]
        return level - 0.5 * gap.square().sum(-1)

    def log_prob(self, z: Tensor) -> Tensor:
        return torch.logsumexp(self._log_parts(z, self.factors()), -1)

    def _expected(self, mean: Tensor, log_scale: Tensor) -> Tensor:
        """log π_c + E_q log N(z; μ_c, Σ_c), (…, components): what q adds at its mean is −½ tr(A_c diag σ² A_cᵀ)."""
        factors = self.factors()
        return self._log_parts(mean, factors) - 0.5 * (2 * log_scale).exp() @ factors.square().sum(1).T

    def log_ratio(self, mean: Tensor, log_scale: Tensor) -> Tensor:
        entropy = log_scale.sum(-1) + 0.5 * (1 + LOG_2PI) * mean.shape[-1]
        return torch.logsumexp(self._expected(mean, log_scale), -1) + entropy

    def responsibilities(self, mean: Tensor, log_scale: Tensor) -> Tensor:
        """q(c | x) ∝ π_c exp E_q log N(z; μ_c, Σ_c): the best q for the bound, (…, components)."""
        return torch.softmax(self._expected(mean, log_scale), -1)

    def sample(self, count: int, like: Tensor) -> Tensor:
        probabilities = torch.softmax(self.logits, -1)
        generator = current_generator(self.mean.device)
        chosen = torch.multinomial(probabilities, count, replacement=True, generator=generator)
        white = noise(count, self.mean.shape[1], 1, like=like)
        return self.mean[chosen] + torch.linalg.solve_triangular(self.factors()[chosen], white, upper=False)[..., 0]


def lower_of_precision(covariances: Tensor) -> Tensor:
    """A lower triangular with AᵀA = Σ⁻¹, of a stack of covariances.

    >>> lower_of_precision(torch.tensor([[[4.0]]]))
    tensor([[[0.5000]]])
    """
    root = torch.linalg.cholesky(covariances)  # Σ = LLᵀ, so Σ⁻¹ = L⁻ᵀL⁻¹
    return torch.linalg.solve_triangular(root, torch.eye(root.shape[-1]).to(root).expand_as(root), upper=False)


class _Flowing(PriorModule):
    def __init__(self, latent: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.latent = latent
        self.flow = stack(Affine(), (latent,), layers=layers, network=MLP((hidden, hidden), activation="tanh"))

    def log_prob(self, z: Tensor) -> Tensor:
        u, log_det = self.flow(z.reshape(-1, self.latent))
        value = -0.5 * (u.square().sum(-1) + LOG_2PI * self.latent) + log_det
        return value.view(z.shape[:-1])

    def sample(self, count: int, like: Tensor) -> Tensor:
        return self.flow.inverse(noise(count, self.latent, like=like))
