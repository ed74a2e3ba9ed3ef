"""MCDropout: dropout left on at prediction, so that every pass is a draw from an approximate posterior.

p(y | x) ≈ 1/T Σₜ p(y | η(x; θ̂ ⊙ maskₜ))
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ...core.errors import ApproximationWarning
from ...core.gradients import following
from ...core.random import drawing
from ...core.spec import require
from ...data.rows import Inputs, row_size
from ...networks.layers.dropout import sharing_masks
from ..posterior import BLOCK, Posterior, check_draws
from ..problem import Inference, Problem
from .around import _Around
from .map import MAP

__all__ = ["DropoutPosterior", "MCDropout"]

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


class MCDropout(_Around):
    """Train `by` another inference, then predict with `draws` random masks. Needs a network with dropout.

    >>> from likely import Regressor
    >>> model = Regressor(network="mlp([16], dropout=0.1)", inference=MCDropout(20, by=MAP(epochs=5)), random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict_dist([[1.0]]).mean.shape
    torch.Size([1])
    """

    draws: int = 50
    by: Inference = MAP()
    asks: ClassVar[frozenset[str]] = frozenset({"rows"})

    @classmethod
    def example(cls) -> MCDropout:
        """A few draws."""
        return cls(4, by=MAP.example())

    def validate(self) -> None:
        """At least one draw."""
        super().validate()
        require(isinstance(self.draws, int) and self.draws > 0, self, "draws", "a positive integer")

    def fit(self, problem: Problem) -> Posterior:
        """The trained parameters, with masks drawn at each prediction."""
        posterior = self.by.fit(problem)
        if not any(isinstance(layer, DROPOUT) and layer.p > 0 for layer in posterior.module.modules()):
            warnings.warn(
                "The network has no dropout, so MCDropout gives what its inner inference gives; "
                "use for example network=MLP(dropout=0.1).",
                ApproximationWarning,
                stacklevel=4,
            )
            return posterior
        info = posterior.info | {"draws": self.draws, "seed": problem.seed}
        return DropoutPosterior(posterior.module, posterior.parameters, posterior.buffers, posterior.weights, info)


class DropoutPosterior(Posterior):
    """Parameters whose dropout layers stay on, with masks that come from the fit's seed.

    A draw is one mask, which all rows share: a function of the row, that answers it alike beside any others.
    """

    kind = "dropout"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for layer in self.module.modules():
            if isinstance(layer, DROPOUT):
                layer.train()

    def eta(self, x: Inputs) -> Tensor:
        """η of every member and mask: (members · draws, n, *positions, size)."""
        draws = int(self.info["draws"])
        step = max(1, BLOCK // (len(self) * draws * row_size(x)))
        with following(x):
            return torch.cat([self._drawn(self.cast(part), draws) for part in x.split(step)], 1)

    def _drawn(self, x: Inputs, draws: int) -> Tensor:
        """η of rows that pass through each mask; the masks begin anew, so those of any other rows are the same."""
        rows = x[torch.arange(len(x), device=x.device).repeat(draws)]
        with drawing(int(self.info["seed"])), sharing_masks(draws):
            eta = super().eta(rows) if len(self) == 1 else self._members(rows)
        return eta.unflatten(1, (draws, -1)).flatten(0, 1)

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        check_draws(learned["info"])
        return super().restore(module, learned, tensors)

    def members(self, x: Inputs) -> tuple[Tensor, Tensor]:
        """Members' weights are shared out equally over masks."""
        draws = int(self.info["draws"])
        return self.eta(x), self.weights.repeat_interleave(draws) / draws
