"""Adam and AdamW as one kernel over all parameters, without the bookkeeping that costs more than the kernel itself.

The numbers are those of `torch.optim.Adam(fused=True)`; the state has the same names, so checkpoints are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from .eager import Eager

__all__ = ["FusedAdam"]

ONE = torch.ones((), device="cpu")
"""Adds to a tensor in a fraction of the time that a number takes."""


class FusedAdam(Eager):
    """Adam (or AdamW, with `decoupled` weight decay) on contiguous parameters of one device.

    A group of one vector may say in `runs` which parts of it decay: how long each is, and whether it does.

    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = FusedAdam([theta], lr=0.25)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> theta.tolist()
    [0.75]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled: bool = False,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "decoupled": decoupled}
        super().__init__(list(parameters), {"lr": lr, **options})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step on the gradients at hand, or on those that the closure leaves; returns the closure's value."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update(group)
        return loss

    step.hooked = True  # type: ignore[attr-defined]  # torch's profiling hook takes longer than a small step

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def _update(self, group: dict[str, Any]) -> None:
        values, gradients, states = [], [], []
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            values.append(_plain(parameter))
            # the kernel reads memory in order: a transposed gradient would be stepped on wrongly without a word
            gradients.append(_plain(gradient if gradient.is_contiguous() else gradient.contiguous()))
            states.append(self.state[parameter] or self._begin(parameter))
        if not values:
            return
        counts = [state["step"] for state in states]
        for count in counts:
            count.add_(ONE)
        means, squares = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq"))
        tensors, decay = (values, gradients, means, squares), group["weight_decay"]
        runs = group.get("runs")
        if runs is None:
            _kernel(group, values, gradients, means, squares, counts, decay)
            return
        sizes = [size for size, _ in runs]
        for decays in {decays for _, decays in runs}:
            chosen = [place for place, (_, own) in enumerate(runs) if own is decays]
            pieces = [[of[0].split(sizes)[place] for place in chosen] for of in tensors]
            values, gradients, means, squares = pieces
            _kernel(group, values, gradients, means, squares, counts * len(chosen), decay if decays else 0.0)

    def _begin(self, parameter: Tensor) -> dict[str, Tensor]:
        """What is remembered before the first step."""
        state: dict[str, Tensor] = self.state[parameter]
        state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        return state


def _kernel(
    group: dict[str, Any],
    values: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    counts: list[Tensor],
    decay: float,
) -> None:
    kernel = torch._fused_adamw_ if group["decoupled"] else torch._fused_adam_
    kernel(
        values,
        gradients,
        means,
        squares,
        [],
        counts,
        lr=group["lr"],
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        weight_decay=decay,
        eps=group["eps"],
        amsgrad=False,
        maximize=False,
    )


def _plain(value: Tensor) -> Tensor:
    """The same memory without a graph: `no_grad` would take as long as the kernel does on a small vector."""
    return value.detach() if value.requires_grad else value
