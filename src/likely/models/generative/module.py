"""The module of a density: what training, questions and draws ask of it.

    log p(x; θ)   or   log p(x | c; θ)   or a draw of a lower bound on it,   and   x ~ p( · ; θ)

Random numbers come from `core.random.current_generator`, so the one who asks owns them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...core.errors import DataError
from ...inference import Posterior

__all__ = ["DensityModule", "UnderCondition", "ask", "with_error"]


class DensityModule(nn.Module):
    """p(x) or p(x | condition) with parameters. x is (n, *shape), a condition (n, *condition shape)."""

    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        """Take units and first guesses from the training rows, into buffers and parameters. NaN is missing."""

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """What training adds up: log p of each row, or one draw of a bound on it, (n,)."""
        raise NotImplementedError

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Tensor | tuple[Tensor, Tensor]:
        """log p of each row (n,); or log-weights (draws, n) whose mean estimates p; or an estimate and its error."""
        return self.forward(x, condition)

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        """New rows, (count, *shape)."""
        raise NotImplementedError

    def drawn(self, count: int, condition: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """New rows with the codes they came from, (count, latent); None where there are none."""
        return self.sample(count, condition), None

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """Rows with NaN filled by draws given the rest, (draws, n, *shape)."""
        raise DataError("This model cannot fill in missing values.")


class UnderCondition(nn.Module):
    """A density of rows under one condition: a function of rows alone, to be measured."""

    def __init__(self, module: DensityModule, condition: Tensor | None) -> None:
        super().__init__()
        self.module, self.condition = module, condition

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x, self.condition)


class _Question(nn.Module):
    """Any method of a module as a forward pass, so that parameters can be lent to it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.inner = module

    def forward(self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return getattr(self.inner, method)(*arguments, **options)


@torch.no_grad()
def ask(posterior: Posterior, member: int, method: str, *arguments: Any, **options: Any) -> Any:
    """The answer of one member of a posterior; threads that ask at the same time do not meet."""
    with posterior.lent() as module:
        if len(posterior) == 1:
            return getattr(module, method)(*arguments, **options)
        parameters, buffers = posterior.member(member)
        own = {f"inner.{name}": value for name, value in (parameters | buffers).items()}
        return functional_call(_Question(module), own, (method, arguments, options))


def with_error(answer: Tensor) -> tuple[Tensor, Tensor]:
    """Of log-weights (draws, n): the log of their mean, and its standard error by the delta method. Else no error.

    >>> with_error(torch.tensor([[0.0], [0.0]]))
    (tensor([0.]), tensor([0.]))
    """
    if answer.ndim == 1:
        return answer, torch.zeros_like(answer)
    count = len(answer)
    mean = torch.logsumexp(answer, 0) - math.log(count)
    relative = (answer - mean).exp()
    return mean, relative.std(0) / math.sqrt(count) if count > 1 else torch.full_like(mean, math.nan)
