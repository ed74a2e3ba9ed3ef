"""A user's own module made to draw its random numbers from the generator that the fit or the call owns."""

from __future__ import annotations

from functools import partial, update_wrapper
from typing import Any

from torch import nn

from ..core.random import current_generator, isolated, redirected
from .layers.dropout import ChannelDropout, Dropout

__all__ = ["adopted"]

OURS: dict[type[nn.Module], type[Dropout] | type[ChannelDropout]] = {
    nn.Dropout: Dropout,
    nn.Dropout1d: ChannelDropout,
    nn.Dropout2d: ChannelDropout,
    nn.Dropout3d: ChannelDropout,
}
"""Layers of torch, and ours that take their place."""
DRAWING = (
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
    nn.RReLU,
    nn.FractionalMaxPool2d,
    nn.FractionalMaxPool3d,
)
"""Layers of torch that draw by themselves; others do if they have a `dropout`."""


def adopted(module: nn.Module) -> nn.Module:
    """The module with our dropout in place of torch's; if other layers of it may draw, its forward pass is redirected.

    >>> from likely.core.random import drawing
    >>> module = adopted(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)))
    >>> type(module[1]) is Dropout
    True
    """
    for layer in module.modules():
        for name, child in layer.named_children():
            if type(child) in OURS:
                p: Any = child.p
                setattr(layer, name, OURS[type(child)](p).train(child.training))
    if any(_may_draw(layer) for layer in module.modules()):
        own = module.forward
        module.forward = update_wrapper(partial(_forward, own), own)  # type: ignore[method-assign]
    return module


def _may_draw(layer: nn.Module) -> bool:
    home = type(layer).__module__
    if not home.startswith(("torch.nn.", "likely.")):
        return True
    dropout = getattr(layer, "dropout", 0.0)
    return isinstance(layer, DRAWING) or bool(isinstance(dropout, float) and dropout)


def _forward(own: Any, *args: Any, **kwargs: Any) -> Any:
    # a module that draws in evaluation too answers a question the same way each time
    alone = current_generator() is None and not own.__self__.training
    with isolated(0) if alone else redirected():
        return own(*args, **kwargs)
