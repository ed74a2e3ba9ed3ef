"""The hyperparameters that evidence is maximised over, as one vector: what a kernel learns, and where to begin."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from ....kernels import KernelModule
from ....kernels.positive import Positive

__all__ = ["every_hyperparameter", "free", "limits", "load_hyperparameters", "names_of", "read", "spread_out", "write"]


def free(kernel: KernelModule) -> list[nn.Parameter]:
    """The parameters that are learned."""
    return [parameter for parameter in kernel.parameters() if parameter.requires_grad]


def read(parameters: list[nn.Parameter]) -> Tensor:
    """Their values, one after the other."""
    flat = [parameter.detach().reshape(-1) for parameter in parameters]
    return torch.cat(flat) if flat else torch.empty(0, dtype=torch.float64)


@torch.no_grad()
def write(parameters: list[nn.Parameter], values: Tensor) -> None:
    """The inverse of `read`."""
    for parameter, own in zip(parameters, values.split([p.numel() for p in parameters]), strict=True):
        parameter.copy_(own.reshape(parameter.shape))


def limits(
    kernel: KernelModule, factor: float, suggested: Tensor, growth: float = math.inf
) -> list[tuple[float | None, float | None]]:
    """Bounds of each hyperparameter: `factor` around its start and what the data suggest, for a logarithm.

    So the bounds move with the units of X and y. The weight of a network has none. A variance may be no more than
    `growth` times what it was (or as it was, if that is less than 1).
    """
    reach = math.log(factor)
    names = _positive(kernel)
    starts = read(free(kernel))
    low, high = torch.minimum(starts, suggested) - reach, torch.maximum(starts, suggested) + reach
    grows = torch.tensor([name == "variance" for name in names_of(kernel)], dtype=torch.bool)
    high = torch.where(grows, torch.minimum(high, starts + max(0.0, math.log(growth))), high)
    both = zip(torch.minimum(low, high).tolist(), high.tolist(), strict=True)
    is_logarithm = [
        name in names
        for name, parameter in kernel.named_parameters()
        if parameter.requires_grad
        for _ in range(parameter.numel())
    ]
    return [pair if logarithm else (None, None) for pair, logarithm in zip(both, is_logarithm, strict=True)]


def names_of(kernel: KernelModule) -> list[str]:
    """What a person calls each hyperparameter that is learned: "lengthscale", "variance"."""
    return [
        name.removesuffix(".log").rpartition(".")[2]
        for name, parameter in kernel.named_parameters()
        if parameter.requires_grad
        for _ in range(parameter.numel())
    ]


def spread_out(kernel: KernelModule, x: Tensor, variance: float, count: int, seed: int) -> list[Tensor]:
    """`count` other starts: one that the data suggest, the others scattered around it.

    Length scales suit the distances between rows, variances that of the targets; other hyperparameters stay.
    """
    names = _positive(kernel)
    random = np.random.default_rng(seed)
    starts = []
    for number in range(count):
        parts = [torch.empty(0, dtype=torch.float64)]
        for name, parameter in kernel.named_parameters():
            if not parameter.requires_grad:
                continue
            start = parameter.detach().clone()
            if name in names:
                start = _suggested(name, start, x, variance)
                if number:
                    start = start + torch.from_numpy(random.normal(0.0, 1.5, size=tuple(start.shape))).reshape(
                        start.shape
                    )
            parts.append(start.reshape(-1))
        starts.append(torch.cat(parts))
    return starts


def _suggested(name: str, start: Tensor, x: Tensor, variance: float) -> Tensor:
    word = name.split(".")[-2] if "." in name else name
    if word == "variance":
        return torch.full_like(start, variance).log()
    if word == "lengthscale":
        rows = x[:: max(1, len(x) // 300)].reshape(len(x[:: max(1, len(x) // 300)]), -1)
        if start.numel() == rows.shape[1] and start.ndim:  # one for each column: what makes √d of it is shared out
            apart = (rows.unsqueeze(0) - rows.unsqueeze(1)).abs().flatten(0, 1)
            typical = apart.mean(0) * rows.shape[1] ** 0.5
        else:
            typical = torch.cdist(rows, rows).mean().expand(start.shape)
        return torch.where(typical > 0, typical.clamp_min(1e-300).log(), start)
    return start


def _positive(kernel: KernelModule) -> set[str]:
    """Names of the parameters that are logarithms of positive numbers."""
    return {f"{name}.log" for name, module in kernel.named_modules() if isinstance(module, Positive)}


def every_hyperparameter(module: KernelModule) -> Tensor:
    """All hyperparameters of a kernel, learned or held."""
    values = [value.detach().double().reshape(-1) for value in module.state_dict().values()]
    return torch.cat(values) if values else torch.empty(0, dtype=torch.float64)


def load_hyperparameters(module: KernelModule, values: Tensor) -> None:
    """The inverse of `every_hyperparameter`."""
    state = module.state_dict()
    parts = values.split([value.numel() for value in state.values()])
    module.load_state_dict(
        {
            name: part.reshape(value.shape).to(value.dtype)
            for (name, value), part in zip(state.items(), parts, strict=True)
        }
    )
