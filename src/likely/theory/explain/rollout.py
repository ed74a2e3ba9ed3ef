"""Attention roll-out: which steps attention has carried to the answer, through all layers.

    R = Ã_L ⋯ Ã_1,     Ã = ½ (mean over heads of A) + ½ I

½ I stands for the way around each layer. The answer is read from the class token, from the last step or from the mean
of all; the row of R that belongs to it says where its numbers came from. The rows of R sum to 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...core.errors import DataError, SpecError
from ...data.rows import Rows
from ...models.supervised.base import as_array
from ...networks.layers.attention import MultiHeadAttention
from ...networks.layers.encoder import Encoder
from ...networks.layers.linear_attention import LinearAttention
from ...networks.vit import Patches
from .attribution import Attribution

__all__ = ["attention_rollout"]

BLOCK = 1 << 22
"""Weights of attention that are kept at once."""


def attention_rollout(model: Any, X: Any) -> Attribution:
    """How much each step of a `Transformer`, or each patch of a `ViT`, has been looked at, directly or through others.

    (n, steps) for sequences, whose numbers sum to 1 up to what the class token kept of itself; for images
    (n, 1, height, width), where each pixel has what its patch has. It says where the model looked, not for or against
    which class. `model` is a fitted classifier or regressor, averaged over its posterior, or a module.

    >>> from likely import Classifier
    >>> X = np.random.default_rng(0).normal(size=(20, 6, 2)).astype("float32")
    >>> network = "transformer(width=8, heads=2, layers=2)"
    >>> model = Classifier(network=network, inference="map(epochs=2)", random_state=0).fit(X, [0, 1] * 10)
    >>> attention_rollout(model, X).values.shape
    (20, 6)
    """
    posterior = getattr(model, "posterior_", None)
    if posterior is None:
        if not isinstance(model, nn.Module):
            raise SpecError(f"model is a {type(model).__name__}; attention_rollout takes a fitted model or a module.")
        x: Any = X if isinstance(X, Tensor) else torch.as_tensor(np.asarray(X))
        modules, weights = [model.eval()], torch.ones(1)
    else:
        x = posterior.cast(model._rows(X))
        modules = [posterior.module_of(i).eval() for i in range(len(posterior))]
        weights = posterior.weights
    lengths = sorted(set(x.lengths.tolist())) if isinstance(x, Rows) else []
    if len(lengths) > 1:
        raise DataError(
            f"X has {x.kind}s of {lengths[0]} to {lengths[-1]} steps; attention_rollout takes those of one length at a "
            "time."
        )
    steps = lengths[0] if lengths else x.shape[1]
    encoders = [_encoder(module) for module in modules]
    step = max(1, BLOCK // _size(encoders[0], modules[0], x, steps))
    seen = torch.zeros(())
    with torch.no_grad():
        for weight, module, encoder in zip(weights.tolist(), modules, encoders, strict=True):
            seen = seen + weight * torch.cat([_rolled(module, encoder, part) for part in x.split(step)])
    values = as_array(seen.double())
    patches = next((part for part in modules[0].modules() if isinstance(part, Patches)), None)
    if patches is not None:
        values = _on_pixels(values, patches.patch, tuple(x.shape[2:]))
    nothing = np.full(len(x), np.nan)
    return Attribution(
        values, "attention roll-out", "attention", None, nothing, X=None if lengths else as_array(x).astype(float)
    )


def _encoder(module: nn.Module) -> Encoder:
    encoder = next((part for part in module.modules() if isinstance(part, Encoder)), None)
    if encoder is None:
        raise SpecError(
            f"{type(getattr(module, 'network', module)).__name__} has no attention; attention_rollout takes a "
            "Transformer or a ViT."
        )
    if any(isinstance(part, LinearAttention) for part in encoder.modules()):
        raise SpecError("Linear attention keeps no weights of single steps; attention_rollout needs softmax attention.")
    if encoder.output == "each":
        raise SpecError('The network answers at each step (output="each"); attention_rollout takes one answer per row.')
    return encoder


def _size(encoder: Encoder, module: nn.Module, x: Any, steps: int) -> int:
    """Weights of one row in one layer."""
    patches = next((part for part in module.modules() if isinstance(part, Patches)), None)
    steps = steps if patches is None else patches.shape(tuple(x.shape[1:]))[0]
    heads = next(part.projections.heads for part in encoder.modules() if isinstance(part, MultiHeadAttention))
    return heads * (steps + 1) ** 2


def _rolled(module: nn.Module, encoder: Encoder, x: Any) -> Tensor:
    """The row of R that the answer is read from, (n, steps)."""
    rolled: list[Tensor] = []

    def look(attention: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        weights = attention.weights(*args, **kwargs).mean(1)
        with_way_around = 0.5 * weights + 0.5 * torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
        rolled[:] = [with_way_around @ rolled[0] if rolled else with_way_around]

    handles = [
        block.attention.register_forward_pre_hook(look, with_kwargs=True)  # type: ignore[union-attr, operator]
        for block in encoder.blocks
    ]
    try:
        module(x)
    finally:
        for handle in handles:
            handle.remove()
    (total,) = rolled
    if encoder.output == "class":
        return total[:, -1, :-1] if encoder.token_at else total[:, 0, 1:]
    return total[:, -1] if encoder.output == "last" else total.mean(1)


def _on_pixels(values: np.ndarray, patch: int, sides: tuple[int, ...]) -> np.ndarray:
    """What patches have, on each of their pixels."""
    grid = tuple(side // patch for side in sides)
    assert math.prod(grid) == values.shape[1]
    maps = values.reshape(len(values), 1, *grid)
    for axis in range(2, maps.ndim):
        maps = maps.repeat(patch, axis)
    return maps
