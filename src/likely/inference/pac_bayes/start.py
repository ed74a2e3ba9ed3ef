"""A problem whose network has seen none of the rows that a bound is computed on.

A predictor starts at the baseline of its targets and, if it is not linear, standardises its inputs. For labels, the
baseline of one target of each class takes the place of that of the data; for other targets, that of a tenth of the
rows, which are then left out. So are they where their inputs set the units of x.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core.random import spread
from ...networks.layers.standardise import Standardise, Statistics, statistics
from ..predictor import Predictor
from ..problem import Problem

__all__ = ["without_data"]

PART = 10
"""One row of this many sets the baseline of targets that are not labels."""


def without_data(problem: Problem) -> tuple[Problem, Tensor]:
    """The problem with its predictor moved to a baseline that the remaining rows had no part in; η of that baseline."""
    data, likelihood, module = problem.data, problem.likelihood, problem.module()
    standardises = isinstance(module, Predictor) and module.inputs is not None
    inputs: Statistics | None = None
    if standardises or not likelihood.labels:
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(spread(problem.seed, 4)[3]))
        first, rest = order.tensor_split([max(1, len(data) // PART)]) if len(data) > 1 else (order, order)
        held, data = data.batch(first.to(data.x.device)), data.subset(rest.to(data.x.device))
        if standardises:
            rows = held.x.flatten(1) if module.flatten else held.x
            inputs = statistics(rows, tuple(module.inputs.centre.shape))  # type: ignore[union-attr, arg-type]
    if likelihood.labels:
        size = module(data.batch(slice(0, 1)).x).shape[-1]
        classes = likelihood.target_of(size).classes or 2
        y, weight = torch.arange(classes, dtype=torch.float64, device=data.x.device), None
        unit: Tensor | None = None
    else:
        event = held.y.shape[held.y.ndim - likelihood.event_dim :]
        y = held.y.reshape(-1, *event).double()
        weight = None if held.weight is None else held.weight.reshape(-1).double()
    if weight is None or not bool(weight.any()):
        weight = torch.ones(len(y), dtype=torch.float64, device=y.device)
    counted = weight > 0
    reference, unit = likelihood.baseline(y[counted], weight[counted])

    def build(seed: int) -> nn.Module:
        return _moved(problem.build(seed), reference, unit, inputs)

    return problem.with_(build=build, data=data), reference


@torch.no_grad()
def _moved(module: nn.Module, reference: Tensor, unit: Tensor, inputs: Statistics | None) -> nn.Module:
    """The predictor with this baseline, and these units of its inputs, instead of its own."""
    if not isinstance(module, Predictor):
        return module
    if module.inputs is not None:
        like = module.inputs.centre
        plain = Statistics(torch.zeros_like(like), torch.ones_like(like), None)
        module.inputs = Standardise(*(plain if inputs is None else inputs)).to(like.device)
    own = len(reference) - (0 if module.shared is None else module.shared.shape[-1])
    if module.shared is not None:
        module.shared.copy_(reference[own:].expand_as(module.shared))
    if module.offset is not None:
        module.offset.copy_(reference[:own].expand_as(module.offset))
    elif module.linear is not None and module.linear.bias is not None:
        module.linear.bias.copy_(reference[:own].repeat(len(module.linear.bias) // own))
    if module.unit is not None:
        module.unit.copy_(unit[:own].expand_as(module.unit))
    return module
