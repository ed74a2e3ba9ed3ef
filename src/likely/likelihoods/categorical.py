"""Categorical: one of K labels without order; the likelihood of softmax regression.

−log p(y = j | x) = log Σₖ exp(ηₖ) − ηⱼ
"""

from __future__ import annotations

import torch
from torch import Tensor, distributions
from torch.nn.functional import cross_entropy

from .base import Target
from .labels import _Labels
from .special import constant

__all__ = ["Categorical"]


class Categorical(_Labels):
    """Categorical(classes=None | K): η are K logits, K taken from the data unless given.

    >>> import torch
    >>> Categorical().log_prob(torch.tensor([0.0, 1e4]), torch.tensor(0))
    tensor(-10000.)
    """

    def offsets(self, target: Target) -> int:
        return self.size(target)  # one for each class: the same for all would change nothing

    def distribution(self, eta: Tensor) -> distributions.Categorical:
        return distributions.Categorical(logits=eta, validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        if eta.ndim == 2 and y.shape == eta.shape[:-1]:  # a batch of rows, as in every training loop
            return -cross_entropy(eta, y.long(), reduction="none")
        shape = torch.broadcast_shapes(eta.shape[:-1], y.shape)
        logits = eta.expand(*shape, eta.shape[-1]).reshape(-1, eta.shape[-1])
        return -cross_entropy(logits, y.long().expand(shape).reshape(-1), reduction="none").reshape(shape)

    def log_likelihood(self, eta: Tensor, y: Tensor) -> Tensor:
        if eta.ndim == 2 and y.shape == eta.shape[:-1]:
            return -cross_entropy(eta, y.long(), reduction="sum")
        return super().log_likelihood(eta, y)

    def probabilities(self, eta: Tensor) -> Tensor:
        return eta.softmax(-1)

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[y = k] − pₖ and diag(p) − ppᵀ."""
        log_prob, score = self.value_and_grad(eta, y)
        probability = eta.softmax(-1)
        outer = probability.unsqueeze(-1) * probability.unsqueeze(-2)
        return log_prob, score, torch.diag_embed(probability) - outer

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if eta.shape[:-1] != y.shape:  # every step of training has them alike: torch takes long to find that out
            shape = torch.broadcast_shapes(eta.shape[:-1], y.shape)
            eta, y = eta.expand(*shape, eta.shape[-1]), y.expand(shape)
        index = y.long().unsqueeze(-1)
        score = eta.log_softmax(-1)
        value = score.gather(-1, index)
        score.exp_().neg_()
        return value.squeeze(-1), score.scatter_add_(-1, index, torch.ones_like(value))

    def total_and_grad(
        self,
        eta: Tensor,
        y: Tensor,
        weight: Tensor | None = None,
        scale: float = 1.0,
        shared: Tensor | None = None,
    ) -> tuple[float, Tensor, Tensor | None]:
        if weight is not None or shared is not None or eta.shape[:-1] != y.shape:
            return super().total_and_grad(eta, y, weight, scale, shared)
        by_column = eta.stride(-2) == 1  # as a narrow product is stored: torch would copy it
        logits, classes = (eta.mT, -2) if by_column else (eta, -1)
        index = y.long().unsqueeze(classes)
        log_prob = logits.log_softmax(classes)
        total = log_prob.gather(classes, index).sum().item()
        score = log_prob.exp_().mul_(constant(-scale, eta.dtype, eta.device))
        score.scatter_(classes, index, scale, reduce="add")
        return total, score.mT if by_column else score, None

    def label_log_probs(self, eta: Tensor) -> Tensor:
        return eta.log_softmax(-1)

    def from_frequencies(self, frequency: Tensor) -> Tensor:
        """Their logarithms."""
        return frequency.log()
