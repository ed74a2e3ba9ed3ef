"""What is trained: members of one kind, all of whose parameters are one flat vector with one flat gradient.

    loss(θ) = −Σ w log p·per_target − smooth log-prior·per_prior        summed over members

One module is called as it is; several are a single stacked program that holds every parameter as (members, …) and runs
all members at once: by batched products if the network is a plain dense one, under `vmap` if not. A module that offers
its own passes (see `networks.layers.dense`) is trained without automatic differentiation.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...data.rows import Rows, row_size
from ...networks.layers.dense import Passes
from ...networks.layers.products import fast_products
from ..dataset import Batch, Dataset
from ..objective import OnEta
from ..problem import Problem
from ..settle import settle
from .batched import batched
from .precision import Half

__all__ = ["Program", "Single", "Stacked", "stackable"]

FEW, BLOCK = 1 << 23, 1 << 16
"""Numbers of x of which a copy may be kept, in the units of the network; and numbers that are brought there at once."""


class Program(ABC):
    """θ as one vector (`flat`), its `gradient`, and `parameters` by name, which are views of it."""

    def __init__(self, problem: Problem, modules: Sequence[nn.Module], *, stacked: bool) -> None:
        self.problem, self.members, self.stacked = problem, len(modules), stacked
        self.module = modules[0].train()
        for module in modules:
            module.train()
        named = [{k: v for k, v in module.named_parameters() if v.requires_grad} for module in modules]
        together = {
            name: torch.stack([own[name].detach() for own in named]) if stacked else value.detach()
            for name, value in named[0].items()
        }
        like = next(iter(together.values()), torch.zeros(0, dtype=problem.data.dtype))
        self.flat = torch.cat([like.new_zeros(0), *(value.flatten() for value in together.values())])
        self.gradient = torch.zeros_like(self.flat)
        self.parameters: dict[str, Tensor] = {}
        values, gradients = self._views(self.flat, together), self._views(self.gradient, together)
        for name, value, gradient in zip(together, values, gradients, strict=True):
            self.parameters[name] = self._leaf(named[0][name], value)
            self.parameters[name].grad = gradient
        buffers = [dict(module.named_buffers()) for module in modules]
        self.buffers = {k: torch.stack([own[k] for own in buffers]) for k in buffers[0]} if stacked else buffers[0]
        self._set_prior(named[0])
        self.passes: Passes | None = self._passes()
        self.half: Half | None = None

    @staticmethod
    def _views(flat: Tensor, like: Mapping[str, Tensor]) -> list[Tensor]:
        pieces = flat.split([value.numel() for value in like.values()])
        return [piece.view(value.shape) for piece, value in zip(pieces, like.values(), strict=True)]

    @abstractmethod
    def _leaf(self, parameter: Tensor, value: Tensor) -> Tensor:
        """A tensor of these values that gradients go to."""

    @abstractmethod
    def output(self, inputs: Sequence[Any]) -> Tensor:
        """What the module gives for the inputs of a batch: of each member, where they are stacked."""

    def _passes(self) -> Passes | None:
        """The module's own forward and backward pass, if it offers them."""
        offer = getattr(self.module, "passes", None)
        if offer is None or not self.parameters or not isinstance(self.problem.objective, OnEta):
            return None
        if isinstance(self.problem.data.x, Rows):
            return None  # those that are not a tensor have products of their own
        if self.stacked and any(bool((value != value[:1]).any()) for value in self.buffers.values()):
            return None  # the module's own buffers would stand for those of all members
        values = {name: value.detach() for name, value in self.parameters.items()}
        fixed = {
            name: value.detach().expand(self.members, *value.shape) if self.stacked else value.detach()
            for name, value in self.module.named_parameters()
            if name not in values
        }
        gradients = {name: value.grad for name, value in self.parameters.items()}
        return offer(values | fixed, gradients, stacked=self.stacked)

    @torch.no_grad()
    def prepared(self, data: Dataset) -> Dataset:
        """The rows as the module's own passes see them, made once and not batch by batch, where they are few."""
        whole = replace(data, rows=None)
        prepare = getattr(self.passes, "prepare", None)
        if prepare is None or self.half is not None or not isinstance(data.x, Tensor) or data.x.numel() > FEW:
            return data
        self.passes.prepared = True  # type: ignore[union-attr]
        objective = cast(OnEta, self.problem.objective)
        y = objective.indexed(data.y) if isinstance(data.y, Tensor) else data.y
        rows = max(1, BLOCK // row_size(data.x))
        blocks = (prepare(block.x) for block in whole.blocks(rows=rows))
        first = next(blocks)
        x, at = first.new_empty(len(data.x), *first.shape[1:]), 0
        for block in (first, *blocks):
            x[at : (at := at + len(block))] = block
        return replace(data, x=x, y=y)

    # --- the loss and its gradient ------------------------------------------------------------------------------
    def evaluate(self, batch: Batch, per_target: float, per_prior: float) -> float:
        """The loss of a batch, summed over members; its gradient is left in `gradient`."""
        if self.passes is None or self.half is not None:
            self.gradient.zero_()
            loss = self.log_likelihood(self._trained(batch), batch).sum() * -per_target
            loss.backward()  # type: ignore[no-untyped-call]
            value = loss.item()
        else:
            value = self._by_hand(self.passes, batch, per_target)
        return value - self.add_prior(per_prior) if self.has_prior else value

    def _trained(self, batch: Batch) -> Tensor:
        """The output of a batch in training, in the precision that was asked for."""
        inputs = self.problem.objective.inputs(batch)
        if self.half is None:
            return self.output(inputs)
        with self.half.running():
            output = self.output(self.half.inputs(inputs))
        return output.to(self.flat.dtype)

    def _by_hand(self, passes: Passes, batch: Batch, per_target: float) -> float:
        """The same without a graph: the passes hold parameters that ask for none."""
        objective = self.problem.objective
        assert isinstance(objective, OnEta)
        eta, shared = passes.forward(batch.x)
        total, gradient, of_shared = objective.total_and_grad(eta, batch.y, batch.weight, -per_target, shared)
        passes.backward(gradient, of_shared)
        return total * -per_target

    def log_likelihood(self, output: Tensor, batch: Batch) -> Tensor:
        """Σ w log p over the rows: a number, or one for each member."""
        if not self.stacked:
            return self.problem.objective.log_likelihood(output, batch)
        value = self.problem.objective.log_prob(output, batch)
        return (value if batch.weight is None else value * batch.weight).flatten(1).sum(1)

    # --- the prior ----------------------------------------------------------------------------------------------
    def _set_prior(self, member: Mapping[str, Tensor]) -> None:
        """Penalty rates of each entry of θ; priors that are not penalties are left to automatic differentiation."""
        rates = {name: self.problem.rates(name, value) for name, value in member.items()}
        self.has_prior = any(rate is None or rate.l2 for rate in rates.values())
        self.sparse = any(rate is not None and rate.l1 for rate in rates.values())
        sizes = [value.numel() for value in self.parameters.values()]
        known = list(rates.values())
        self.l1 = self._each([0.0 if rate is None else rate.l1 for rate in known], sizes) if self.sparse else None
        self.l2: Tensor | None = None
        self._at_zero = 0.0
        if self.has_prior and all(rate is not None for rate in known):
            self.l2 = self._each([0.0 if rate is None else rate.l2 for rate in known], sizes)
            zero = {name: torch.zeros_like(value) for name, value in member.items()}
            self._at_zero = self.members * float(self.problem.smooth_log_prior(zero))

    def _each(self, values: list[float], sizes: list[int]) -> Tensor:
        return torch.cat([self.flat.new_full((size,), value) for value, size in zip(values, sizes, strict=True)])

    def decaying(self, only_weights: bool) -> Tensor:
        """1 for each entry of θ that an optimiser's decay is for: all but the constants, or the weights alone.

        Constants are in units of y, such as log σ: 0 is nowhere to be drawn to. Biases and gains, of fewer than two
        axes, are no weights.
        """
        least = 2 if only_weights else 0
        axes = {name: value.ndim - self.stacked for name, value in self.parameters.items()}
        sizes = [value.numel() for value in self.parameters.values()]
        return self._each([float(name != "shared" and own >= least) for name, own in axes.items()], sizes)

    def add_prior(self, per_prior: float) -> float:
        """The smooth log-prior·per_prior; its gradient is subtracted from `gradient`."""
        if self.l2 is not None:
            with torch.no_grad():
                self.gradient.addcmul_(self.l2, self.flat, value=per_prior)
                return (self._at_zero - 0.5 * torch.dot(self.l2 * self.flat, self.flat).item()) * per_prior
        smooth = self.problem.smooth_log_prior
        value = (torch.vmap(smooth) if self.stacked else smooth)(self.parameters).sum() * per_prior
        (-value).backward()  # type: ignore[no-untyped-call]
        return value.item()

    # --- statistics of the rows ---------------------------------------------------------------------------------
    @torch.no_grad()
    def settle(self, data: Dataset) -> None:
        """Give layers that keep statistics of the rows those of θ as it is now."""
        if not any(getattr(layer, "track_running_stats", False) for layer in self.module.modules()):
            return
        problem = self.problem.with_(data=data)
        if not self.stacked:
            settle(self.module, problem).train()
            return
        for member in range(self.members):
            module = copy.deepcopy(self.module)
            own = {name: value[member] for name, value in (self.parameters | self.buffers).items()}
            module.load_state_dict(own, strict=False)
            for name, value in settle(module, problem).named_buffers():
                self.buffers[name][member] = value

    # --- held-out rows ------------------------------------------------------------------------------------------
    @torch.no_grad()
    def score(self, data: Dataset) -> Tensor:
        """Mean −log p(y | η) of each member on held-out rows, in evaluation mode: (members,)."""
        self.module.eval()
        total = torch.zeros(self.members, dtype=torch.float64)
        for batch in data.blocks():
            inputs = self.problem.objective.inputs(batch)
            if self.stacked:
                inputs = tuple(part.expand(self.members, *part.shape) for part in inputs)
            total += self.log_likelihood(self.output(inputs), batch).double().cpu()
        self.module.train()
        return -total / data.total_weight()


class Single(Program):
    """One module, called as it is."""

    def __init__(self, problem: Problem, module: nn.Module) -> None:
        super().__init__(problem, [module], stacked=False)

    def _leaf(self, parameter: Tensor, value: Tensor) -> Tensor:
        parameter.data = value
        return parameter

    def output(self, inputs: Sequence[Any]) -> Tensor:
        with fast_products():
            return self.module(*inputs)


class Stacked(Program):
    """Several members: parameters (members, …), the module vectorised over them, each with its own batch."""

    def __init__(self, problem: Problem, modules: Sequence[nn.Module]) -> None:
        super().__init__(problem, modules, stacked=True)
        frozen = any(name not in self.parameters for name, _ in self.module.named_parameters())
        whole = None if frozen else batched(self.module)  # which takes all weights from the members
        self._outputs = whole or torch.vmap(self._forward, randomness="different")

    def _leaf(self, parameter: Tensor, value: Tensor) -> Tensor:
        return value.detach().requires_grad_()

    def output(self, inputs: Sequence[Any]) -> Tensor:
        return self._outputs(self.parameters, self.buffers, *inputs)

    def _forward(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], *inputs: Tensor) -> Tensor:
        return functional_call(self.module, (dict(parameters), dict(buffers)), inputs)


def stackable(problem: Problem) -> bool:
    """Whether the network can be vectorised over members: tried on two that are alike, and a few rows."""
    module = problem.module()
    try:
        program = Stacked(problem, [module, module])
        rows = torch.arange(min(len(problem.data), 4)).repeat(2, 1)
        program.evaluate(problem.data.batch(rows), 1.0, 1.0)
    except (RuntimeError, NotImplementedError, ValueError):
        return False
    return True
