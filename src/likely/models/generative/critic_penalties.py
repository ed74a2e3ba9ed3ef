"""What keeps a critic's gradients short, so that the generator has something to follow.

Clip(c)            every weight of the critic is put back into [−c, c] before it is used
Gradient(λ, k)     λ E (‖∇d(x̂)‖ − k)²,   x̂ = u x + (1 − u) G(z), u ~ U(0, 1)
Spectral()         each weight matrix is divided by its largest singular value: ‖W/σ(W)‖ = 1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import normalize

from ...core.random import current_generator, normal_like
from ...core.spec import Spec, require
from .gan_losses import weighted_mean

__all__ = ["Clip", "CriticPenalty", "Gradient", "Lipschitz", "Spectral"]

FIRST = 30
"""Steps of power iteration before training; each pass in training adds one."""
TINY = 1e-12
"""Added to a squared length, whose root has no derivative at 0."""


class CriticPenalty(Spec, axis="critic_penalty"):
    """How a critic is held; what a kind does not do, it leaves as it is."""

    def held(self, critic: nn.Module) -> nn.Module:
        """The critic as it is built."""
        return critic

    def project(self, critic: nn.Module) -> None:
        """Put the weights back to where they may be, before a pass in training."""

    def price(
        self,
        score: Callable[[Tensor, Tensor | None], Tensor],
        real: Tensor,
        generated: Tensor,
        condition: Tensor | None,
        weight: Tensor | None,
    ) -> Tensor | None:
        """What is added to the critic's loss on these rows."""
        return None


class Clip(CriticPenalty):
    """Weights and biases within [−bound, bound], which bounds the critic's gradients somewhere.

    >>> critic = nn.Linear(1, 1)
    >>> nn.init.constant_(critic.weight, 3.0).item(), Clip(0.5).project(critic), critic.weight.item()
    (3.0, None, 0.5)
    """

    bound: float = 0.01

    def validate(self) -> None:
        """A bound above 0."""
        require(0 < self.bound < float("inf"), self, "bound", "a number above 0")

    @torch.no_grad()
    def project(self, critic: nn.Module) -> None:
        for value in critic.parameters():
            value.clamp_(-self.bound, self.bound)


class Gradient(CriticPenalty):
    """λ = `weight` times the mean of (‖∇d‖ − `norm`)², at points between real and generated rows, or at real ones.

    `norm=1` is that of a Wasserstein distance; `norm=0` with `at="real"` lets any of the games come to rest where the
    generator is right, since there a critic with a gradient pays for it.

    >>> rows = torch.tensor([[1.0], [2.0]])
    >>> Gradient(weight=10.0).price(lambda x, _: 3 * x[:, 0], rows, rows, None, None).item()
    40.0
    """

    weight: float = 10.0
    norm: float = 1.0
    at: Literal["between", "real"] = "between"

    def validate(self) -> None:
        """A positive weight, a length of 0 or more, and a known place."""
        require(0 < self.weight < float("inf"), self, "weight", "a number above 0")
        require(0 <= self.norm < float("inf"), self, "norm", "a number, 0 or more")
        require(self.at in ("between", "real"), self, "at", '"between" or "real"')

    def price(
        self,
        score: Callable[[Tensor, Tensor | None], Tensor],
        real: Tensor,
        generated: Tensor,
        condition: Tensor | None,
        weight: Tensor | None,
    ) -> Tensor:
        at = real
        if self.at == "between":
            shape = (len(real), *(1 for _ in real.shape[1:]))
            part = torch.rand(shape, generator=current_generator(real.device), dtype=real.dtype, device=real.device)
            at = torch.lerp(generated, real, part)
        with torch.enable_grad():
            at = at.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(score(at, condition).sum(), at, create_graph=True)
            squared = gradient.flatten(1).square().sum(1)
            excess = squared if self.norm == 0 else ((squared + TINY).sqrt() - self.norm).square()
            return self.weight * weighted_mean(excess, weight)


class Spectral(CriticPenalty):
    """Every weight matrix has the largest singular value 1 (a kernel as the matrix from its inputs to its channels).

    With activations that do not stretch, a critic of dense layers is then 1-Lipschitz.
    """

    def held(self, critic: nn.Module) -> nn.Module:
        return Lipschitz(critic)


class Lipschitz(nn.Module):
    """A network whose weights W are used as W/σ(W), with σ by power iteration.

    >>> network = nn.Linear(2, 2, bias=False)
    >>> _ = network.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 1.0]]))
    >>> Lipschitz(network)(torch.tensor([[1.0, 0.0]])).abs().max().item()
    1.0
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.matrices = [name for name, value in network.named_parameters() if value.ndim > 1]
        for place, name in enumerate(self.matrices):
            matrix = network.get_parameter(name).detach().flatten(1)
            left = normal_like(matrix.new_empty(len(matrix)))
            self.register_buffer(f"left{place}", _iterated(matrix, left, FIRST)[0])

    def weights(self) -> dict[str, Tensor]:
        """W/σ(W) by name. In training, σ is followed as W moves."""
        held = {}
        for place, name in enumerate(self.matrices):
            value, left = self.network.get_parameter(name), self.get_buffer(f"left{place}")
            with torch.no_grad():
                new, right = _iterated(value.flatten(1), left, 1)
                if self.training:
                    left.copy_(new)
            held[name] = value / torch.dot(new, value.flatten(1) @ right)
        return held

    def forward(self, *inputs: Tensor) -> Tensor:
        return functional_call(self.network, self.weights(), inputs)  # type: ignore[no-any-return]


def _iterated(matrix: Tensor, left: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Singular vectors of the largest singular value, a few steps closer."""
    for _ in range(steps):
        right = normalize(matrix.T @ left, dim=0)
        left = normalize(matrix @ right, dim=0)
    return left, right
