"""Grad-CAM: where the last convolution of a network sees what is explained.

    cam(p) = max(0, Σ_c α_c A_c(p)),     α_c = the mean over positions of ∂f/∂A_c

A are the channels that the last convolutional layer gives. With several members, f is that of their average, and each
member's map is added with the gradient that goes to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ...core.errors import DataError, SpecError
from ...inference.posterior import average
from ...models.supervised.base import as_array
from ...networks.layers.conv import Conv
from ..receptive_field import ENDS, in_order
from .attribution import Attribution
from .outputs import Output, differentiable, of_scores

__all__ = ["grad_cam"]

CONVOLUTIONS = (Conv, nn.Conv1d, nn.Conv2d)


def grad_cam(
    model: Any, X: Any, target: Any = None, *, layer: nn.Module | None = None, of: str = "auto"
) -> Attribution:
    """A map (n, 1, height, width) of where a convolutional network sees the class `target`, 0 or more everywhere.

    It is as coarse as the last convolutional layer and is drawn out to the size of the image, bilinearly. `layer`
    names another layer of a module that is explained by itself.

    >>> import numpy as np
    >>> from likely import Classifier
    >>> X = np.zeros((8, 1, 8, 8), np.float32)
    >>> X[:4, :, :4, :4] = X[4:, :, 4:, 4:] = 1.0
    >>> training = "map(adam(0.03), epochs=30)"
    >>> model = Classifier(network="conv_net([4])", inference=training, random_state=0).fit(X, [0] * 4 + [1] * 4)
    >>> grad_cam(model, X).values.shape
    (8, 1, 8, 8)
    """
    output = differentiable(model, of)
    x = output.read(X)
    if x.ndim not in (3, 4):
        raise DataError(
            f"X has rows of shape {tuple(x.shape[1:])}; grad_cam takes images (channels, height, width) or series."
        )
    place = output.places(x, target)
    modules = _modules(model)
    seen = [_layer(module, layer) for module in modules]
    maps = []
    for first in range(0, len(x), output.rows):
        own = slice(first, first + output.rows)
        maps.append(_maps(model, output, modules, seen, x[own], place[own]))
    coarse = torch.cat(maps)
    smooth = interpolate(coarse, list(x.shape[2:]), mode="bilinear" if x.ndim == 4 else "linear", align_corners=False)
    values = as_array(output.values(x, place).double())
    return Attribution(
        as_array(smooth.double()), "Grad-CAM", output.of, output.explained, values, X=as_array(x.double())
    )


def _maps(
    model: Any, output: Output, modules: list[nn.Module], layers: list[nn.Module], x: Tensor, place: Tensor
) -> Tensor:
    """Coarse maps of a block of rows, (n, 1, *positions)."""
    channels, answers = [], []
    with torch.enable_grad():
        for module, layer in zip(modules, layers, strict=True):
            with _kept(layer) as kept:
                answers.append(module(x.detach().requires_grad_()))
            channels.append(kept[-1])
        f = output.pick(_scores(model, output, answers), place)
        gradients = torch.autograd.grad(f.sum(), channels)
    total = torch.zeros(())
    for gradient, seen in zip(gradients, channels, strict=True):
        share = gradient.flatten(2).mean(2).view(*gradient.shape[:2], *(1,) * (gradient.ndim - 2))
        total = total + (share * seen.detach()).sum(1, keepdim=True)
    return total.clamp_min(0)


def _scores(model: Any, output: Output, answers: list[Tensor]) -> Tensor:
    """Every number that could be explained, of the members' η or of a module's own answer."""
    if not hasattr(model, "posterior_"):
        return answers[0].unsqueeze(1) if answers[0].ndim == 1 else answers[0]
    together = average(model.likelihood_, torch.stack(answers), model.posterior_.weights)
    return of_scores(output.victim.read_scores(together), output.of)  # type: ignore[attr-defined]


def _modules(model: Any) -> list[nn.Module]:
    """The members of a fitted model, or the module itself."""
    posterior = getattr(model, "posterior_", None)
    if posterior is None:
        if not isinstance(model, nn.Module):
            raise SpecError(
                f"model is a {type(model).__name__}; grad_cam looks inside, so it takes a module or a fitted model."
            )
        return [model]
    if posterior.kind == "dropout":
        raise SpecError("The model draws new masks at every prediction (MCDropout), so no layer gives one answer.")
    return [posterior.module_of(i).eval() for i in range(len(posterior))]


def _layer(module: nn.Module, layer: nn.Module | None) -> nn.Module:
    """The last layer of the convolutional part: after its norm and activation, before pooling."""
    if layer is not None:
        if all(layer is not part for part in module.modules()):
            raise SpecError(f"layer={type(layer).__name__} is not a part of the module that is explained.")
        return layer
    last = None
    for part in in_order(getattr(module, "network", module)):
        if isinstance(part, ENDS):
            break
        if any(isinstance(inner, CONVOLUTIONS) for inner in part.modules()) or last is not None:
            last = part
    if last is None:  # a module that is not one layer after the other: its last convolution
        last = next((part for part in reversed(list(module.modules())) if isinstance(part, CONVOLUTIONS)), None)
    if last is None:
        raise SpecError(
            f"{type(getattr(module, 'network', module)).__name__} has no convolution, whose channels grad_cam weighs; "
            "use integrated_gradients or occlusion."
        )
    return last


@contextmanager
def _kept(layer: nn.Module) -> Iterator[list[Tensor]]:
    """What the layer gives while this lasts."""
    kept: list[Tensor] = []
    handle = layer.register_forward_hook(lambda _module, _args, given: kept.append(given))
    try:
        yield kept
    finally:
        handle.remove()
