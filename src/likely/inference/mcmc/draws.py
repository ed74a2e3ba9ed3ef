"""The posterior that Markov chains draw: every draw of every chain is a member, and all weigh the same.

p(y | x, data) ≈ 1/(m·n) Σ_c Σ_t p(y | η(x; θ_ct))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelFileError
from ...data.rows import Inputs
from ...sampling.chains import arviz
from ..parameters import stacked
from ..posterior import Posterior

__all__ = ["ChainPosterior"]

AT_ONCE = 1 << 25
"""Numbers of parameters that a prediction looks at together."""


class ChainPosterior(Posterior):
    """Draws of several chains: parameters (chains · draws, …), chain after chain.

    `log_prob` is log p(θ | data) + const of each draw, (chains, draws); `stats` is what the sampler recorded, by name.
    `info` tells acceptance, step size, divergences, the largest R-hat and the smallest ESS (and of what they are),
    and how long the fit took.

    >>> from likely import Regressor, priors
    >>> from likely.inference import HMC
    >>> from likely.likelihoods import Normal
    >>> model = Regressor(Normal(0.5), prior=priors.Normal(1.0), inference=HMC(chains=4, draws=50), random_state=0)
    >>> draws = model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_
    >>> draws.parameters["network.weight"].shape, draws.log_prob.shape
    (torch.Size([200, 1, 1]), torch.Size([4, 50]))
    """

    kind = "chains"
    extra = ("stats", "log_prob")
    log_prob: Tensor
    stats: dict[str, Tensor]
    drawn: tuple[str, ...]

    @classmethod
    def of_draws(
        cls,
        module: nn.Module,
        parameters: Mapping[str, Tensor],
        log_prob: Tensor,
        stats: Mapping[str, Tensor],
    ) -> ChainPosterior:
        """From drawn parameters (chains · draws, …); what is not drawn is the module's own in all."""
        count = log_prob.numel()
        weights = torch.full((count,), 1 / count, dtype=log_prob.dtype, device=log_prob.device)
        made = cls(module, *stacked(module, parameters, count), weights)
        made.log_prob, made.stats, made.drawn = log_prob, dict(stats), tuple(parameters)
        return made

    @staticmethod
    def _laid_out(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """More than a prediction looks at together stays where it is, be it in a file; its parts are laid out then."""
        many = sum(value.numel() for value in values.values()) > AT_ONCE
        return dict(values) if many else Posterior._laid_out(values)

    def to_arviz(self) -> Any:
        """An `arviz.InferenceData`: posterior (chain, draw, …) by parameter, and sample_stats with lp, diverging, …"""
        shape = tuple(self.log_prob.shape)
        posterior = {name: self.parameters[name].unflatten(0, shape).cpu().numpy() for name in self.drawn}
        stats = {"lp": self.log_prob} | self.stats
        return arviz().from_dict(
            posterior=posterior, sample_stats={name: value.cpu().numpy() for name, value in stats.items()}
        )

    def _members(self, x: Inputs) -> Tensor:
        """In parts, so that draws which lie in a file are never in memory all at once."""
        size = sum(math.prod(value.shape[1:]) for value in self.parameters.values())
        step = max(1, AT_ONCE // max(1, size))
        if step >= len(self):
            return super()._members(x)
        etas = []
        for first in range(0, len(self), step):
            part = slice(first, first + step)
            parameters, buffers = ({k: v[part] for k, v in group.items()} for group in (self.parameters, self.buffers))
            etas.append(Posterior(self.module, parameters, buffers).eta(x))
        return torch.cat(etas)

    # --- files --------------------------------------------------------------------------------------------------
    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super().state()
        tensors |= {f"stats.{name}": value for name, value in self.stats.items()}
        return learned | {"drawn": list(self.drawn)}, tensors | {"log_prob": self.log_prob}

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        made = super().restore(module, learned, tensors)
        assert isinstance(made, cls)
        made.log_prob, made.drawn = tensors["log_prob"], tuple(learned["drawn"])
        made.stats = {name.removeprefix("stats."): v for name, v in tensors.items() if name.startswith("stats.")}
        fits = made.log_prob.ndim == 2 and made.log_prob.numel() == len(made.weights)
        fits = fits and all(value.shape == made.log_prob.shape for value in made.stats.values())
        if not fits or not set(made.drawn) <= set(made.parameters):
            raise ModelFileError("The file does not fit its own specs: its draws are not those of its chains.")
        return made
