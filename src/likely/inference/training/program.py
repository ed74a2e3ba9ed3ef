"""What is trained: one module, or several members of one kind as a single stacked tensor program.

Both answer the same questions: the loss of a batch (one number per member), a validation score, the state. The stacked
form holds every parameter as (members, …) and runs all members at once: by batched products if the network is a plain
dense one, under `vmap` if not. So ten small networks cost one program.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state

from ..dataset import Batch, Dataset
from ..problem import Problem
from .batched import batched

__all__ = ["Program", "Single", "Stacked", "stackable"]


class Single:
    """One module, called as it is."""

    members = 1

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.module = problem.module(seed).train()
        self.parameters = {k: v for k, v in self.module.named_parameters() if v.requires_grad}
        self.buffers = dict(self.module.named_buffers())

    def loss(self, batch: Batch, per_target: float, per_prior: float) -> Tensor:
        """−Σ w log p(y | η)·per_target − smooth log-prior·per_prior."""
        loss = self.problem.log_likelihood(self.module, batch) * -per_target
        if self.problem.has_prior:
            loss = loss - self.problem.smooth_log_prior(self.parameters) * per_prior
        return loss

    @torch.no_grad()
    def score(self, data: Dataset) -> Tensor:
        """Mean −log p(y | η) on held-out rows, in evaluation mode."""
        self.module.eval()
        blocks = data.blocks()
        total = sum((self.problem.log_likelihood(self.module, b).double() for b in blocks), torch.zeros(()))
        self.module.train()
        return (-total / data.total_weight()).reshape(1)


class Stacked:
    """Several members: parameters (members, …), the module vectorised over them, each with its own batch."""

    def __init__(self, problem: Problem, seeds: list[int]) -> None:
        modules = [problem.module(seed).train() for seed in seeds]
        stacked, self.buffers = stack_module_state(modules)
        self.parameters: dict[str, Tensor] = dict(stacked)
        self.problem, self.members = problem, len(seeds)
        self.module = modules[0]
        self._output = batched(self.module) or torch.vmap(self._forward, randomness="different")
        self._log_prior = torch.vmap(problem.smooth_log_prior)

    def _forward(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], *inputs: Tensor) -> Tensor:
        return functional_call(self.module, (dict(parameters), dict(buffers)), inputs)

    def loss(self, batch: Batch, per_target: float, per_prior: float) -> Tensor:
        """The same for each member, on its own rows: (members,)."""
        output = self._output(self.parameters, self.buffers, *self.problem.objective.inputs(batch))
        loss = self._sums(output, batch) * -per_target
        if self.problem.has_prior:
            loss = loss - self._log_prior(self.parameters) * per_prior
        return loss

    @torch.no_grad()
    def score(self, data: Dataset) -> Tensor:
        """The same for each member: (members,)."""
        self.module.eval()
        total = torch.zeros(self.members, dtype=torch.float64)
        for batch in data.blocks():
            inputs = [part.expand(self.members, *part.shape) for part in self.problem.objective.inputs(batch)]
            output = self._output(self.parameters, self.buffers, *inputs)
            total += self._sums(output, batch).double().cpu()
        self.module.train()
        return -total / data.total_weight()

    def _sums(self, output: Tensor, batch: Batch) -> Tensor:
        """Σ w log p of each member: objectives take leading axes as they come."""
        log_prob = self.problem.objective.log_prob(output, batch)
        log_prob = log_prob if batch.weight is None else log_prob * batch.weight
        return log_prob.flatten(1).sum(1)


Program = Single | Stacked
"""The training engine's view of what it trains."""


def stackable(problem: Problem) -> bool:
    """Whether the network can be vectorised over members: tried on two members and a few rows."""
    try:
        program = Stacked(problem, [0, 1])
        rows = torch.arange(min(len(problem.data), 4)).repeat(2, 1)
        program.loss(problem.data.batch(rows), 1.0, 1.0).sum().backward()
    except (RuntimeError, NotImplementedError, ValueError):
        return False
    return True
