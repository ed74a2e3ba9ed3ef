"""Flows against zuko and nflows: RealNVP, MAF and neural splines, in training steps and in draws.

D = 8, 5 transforms, conditioners of 64 × 64 units, 8 bins: the same model by all three. A step is log p of 256 rows and
its gradient; a draw is 2,000 rows. The quality is the largest error of the inverse in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from likely.models.generative.base_density import BaseDensity
from likely.models.generative.flow_module import FlowModule
from likely.models.generative.transforms import Affine, Spline, stack

from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

D, LAYERS, HIDDEN, BINS, BOUND = 8, 5, 64, 8, 5.0
ROWS, DRAWS, STEPS = 256, 2_000, 5
MODELS = {
    "RealNVP": (Affine(), "coupling"),
    "MAF": (Affine(), "autoregressive"),
    "spline, coupling": (Spline(BINS, BOUND), "coupling"),
    "spline, autoregressive": (Spline(BINS, BOUND), "autoregressive"),
}
STEP = {"zuko": 1 / 1.1, "nflows": 1.0}
SAMPLE = {"zuko": 1 / 1.2, "nflows": 1 / 1.2}
INVERSE = 1e-5


def run(repeats: int = 15) -> list[Result]:
    """A step and draws of each model, with one thread: the operations are small."""
    return with_threads(1, lambda: [line for name in MODELS for line in _model(name, repeats)])


def _model(name: str, repeats: int) -> list[Result]:
    torch.manual_seed(0)
    x = torch.randn(ROWS, D)
    transform, order = MODELS[name]
    ours = FlowModule(stack(transform, (D,), order=order, layers=LAYERS), BaseDensity("normal", (D,)), (D,))  # type: ignore[arg-type]
    ours.adapt(x, None, None)  # units of the rows, which peers do without
    zuko, nflows = _zuko(name), _nflows(name)
    steps = {
        "likely": _stepping(ours, lambda: ours(x)),
        "zuko": _stepping(zuko, lambda: zuko().log_prob(x)),
        "nflows": _stepping(nflows, lambda: nflows.log_prob(x)),
    }
    draws = {
        "likely": torch.no_grad()(lambda: ours.sample(DRAWS)),
        "zuko": torch.no_grad()(lambda: zuko().sample((DRAWS,))),
        "nflows": torch.no_grad()(lambda: nflows.sample(DRAWS)),
    }
    error = _inverse_error(ours, torch.randn(DRAWS, D))

    def quality(mine: Any, peer: Any) -> tuple[str, bool]:
        return f"inverse within {error:.1e} in float32", error <= INVERSE

    return [
        *compare(f"{name}: {STEPS} training steps, {ROWS} rows", interleave(steps, repeats), quality, STEP),
        *compare(f"{name}: {DRAWS:,} draws", interleave(draws, repeats), quality, SAMPLE),
    ]


def _stepping(module: nn.Module, log_prob: Callable[[], Tensor]) -> Callable[[], None]:
    def steps() -> None:
        for _ in range(STEPS):
            module.zero_grad()
            (-log_prob().mean()).backward()

    return steps


@torch.no_grad()
def _inverse_error(flow: FlowModule, x: Tensor) -> float:
    return float((flow.decode(flow.code(x)) - x).abs().max())


def _zuko(name: str) -> Any:
    import zuko

    options: dict[str, Any] = {"transforms": LAYERS, "hidden_features": (HIDDEN, HIDDEN)}
    match name:
        case "RealNVP":
            return zuko.flows.MAF(D, passes=2, **options)  # its way to write couplings
        case "MAF":
            return zuko.flows.MAF(D, **options)
        case "spline, coupling":
            return zuko.flows.NSF(D, bins=BINS, passes=2, **options)
        case _:
            return zuko.flows.NSF(D, bins=BINS, **options)


def _nflows(name: str) -> Any:
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms import autoregressive, coupling
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation
    from nflows.utils import create_alternating_binary_mask

    spline = {"num_bins": BINS, "tails": "linear", "tail_bound": BOUND}
    made = {"num_blocks": 1, "use_residual_blocks": False}
    maps: list[Any] = []
    for layer in range(LAYERS):
        mask = create_alternating_binary_mask(D, even=layer % 2 == 0)
        match name:
            case "RealNVP":
                maps.append(coupling.AffineCouplingTransform(mask, _Dense))
            case "MAF":
                maps += [autoregressive.MaskedAffineAutoregressiveTransform(D, HIDDEN, **made), ReversePermutation(D)]
            case "spline, coupling":
                maps.append(coupling.PiecewiseRationalQuadraticCouplingTransform(mask, _Dense, **spline))
            case _:
                chained = autoregressive.MaskedPiecewiseRationalQuadraticAutoregressiveTransform
                maps += [chained(D, HIDDEN, **made, **spline), ReversePermutation(D)]
    return Flow(CompositeTransform(maps), StandardNormal([D]))


class _Dense(nn.Module):
    """The conditioner, as nflows calls it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))
        )

    def forward(self, x: Tensor, context: Any = None) -> Tensor:
        return self.layers(x)


if __name__ == "__main__":
    show(run())
