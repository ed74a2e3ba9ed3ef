"""MCDropout: dropout left on at prediction, so that every pass is a draw from an approximate posterior.

p(y | x) ≈ 1/T Σₜ p(y | η(x; θ̂ ⊙ maskₜ))
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ...core.errors import ApproximationWarning
from ...core.gradients import following
from ...core.random import drawing
from ...core.spec import require
from ...data.rows import Inputs
from ...networks.layers.dropout import sharing_masks
from ..posterior import Posterior, check_draws
from ..problem import Inference, Problem
from .around import _Around
from .map import MAP

__all__ = ["DropoutPosterior", "MCDropout", "fixed_masks"]

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


_fixed: ContextVar[bool] = ContextVar("fixed", default=False)


@contextmanager
def fixed_masks() -> Iterator[None]:
    """Inside, the masks of an `MCDropout` posterior are the same for every row and every question, in this thread.

    Each mask is then one function of x, so that answers for different rows differ by the rows alone.

    >>> from likely import Regressor
    >>> inference = MCDropout(5, by=MAP(epochs=2))
    >>> model = Regressor(network="mlp([16], dropout=0.5)", inference=inference, random_state=0)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> with fixed_masks():
    ...     answers = model.predict([[1.0], [1.0]])
    >>> bool(abs(answers[0] - answers[1]) < 1e-6)
    True
    """
    token = _fixed.set(True)
    try:
        yield
    finally:
        _fixed.reset(token)


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
    """Parameters whose dropout layers stay on. The masks come from the fit's seed: the same X gives the same answer."""

    kind = "dropout"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for layer in self.module.modules():
            if isinstance(layer, DROPOUT):
                layer.train()

    def eta(self, x: Inputs) -> Tensor:
        """η of every member and mask: (members · draws, n, *positions, size)."""
        draws, fixed = int(self.info["draws"]), _fixed.get()
        with following(x), drawing(int(self.info["seed"])), sharing_masks(draws if fixed else 0):
            again = torch.arange(len(x), device=x.device).repeat(draws)
            rows = self.cast(x)[again]
            eta = self._members(rows) if fixed and len(self) > 1 else super().eta(rows)  # all rows at once
        return eta.unflatten(1, (draws, -1)).flatten(0, 1)

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        check_draws(learned["info"])
        return super().restore(module, learned, tensors)

    def members(self, x: Inputs) -> tuple[Tensor, Tensor]:
        """Members' weights are shared out equally over masks."""
        draws = int(self.info["draws"])
        return self.eta(x), self.weights.repeat_interleave(draws) / draws
