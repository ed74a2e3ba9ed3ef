"""The masked form of a network: the same layers, through which each column sees the ones before it alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from ..core.errors import SpecError
from .base import as_network, refuse_absurd
from .layers.masked import RESIDUALS, MaskedMLP
from .linear import Linear
from .mlp import MLP

__all__ = ["has_masked_form", "masked_network"]


def has_masked_form(network: Any) -> bool:
    """Whether `masked_network` takes it.

    >>> has_masked_form(MLP((8,))), has_masked_form(MLP((8,), norm="layer"))
    (True, False)
    """
    spec = as_network(network)
    return isinstance(spec, Linear) or (isinstance(spec, MLP) and spec.norm is None and spec.residual in RESIDUALS)


def masked_network(
    network: Any,
    inputs: Sequence[int],
    outputs: Sequence[int],
    orders: Sequence[Sequence[int]] | None = None,
    condition: int = 0,
) -> MaskedMLP:
    """An `MLP` or `Linear` as a `MaskedMLP`; `inputs` and `outputs` name the column of each input and output.

    >>> masked_network(MLP((8,)), [0, 1], [0, 0, 1, 1]).last.weight.shape
    torch.Size([4, 8])
    """
    spec = as_network(network)
    if isinstance(spec, Linear):
        module = MaskedMLP(inputs, outputs, (), orders, condition, bias=spec.bias)
        nn.init.zeros_(module.last.weight)  # its fits are convex
        return module
    if not isinstance(spec, MLP):
        raise SpecError(
            f"network={network!r} has no masked form, in which columns see earlier ones; use MLP or Linear."
        )
    if spec.norm is not None:
        raise SpecError(f"norm={spec.norm!r} has no masked form: it mixes columns; use MLP(norm=None).")
    if spec.residual not in RESIDUALS:
        raise SpecError(f"residual={spec.residual!r} has no masked form; use None, 'add' or 'dense'.")
    refuse_absurd(spec, spec._weights(len(inputs) + condition, len(outputs)))
    return MaskedMLP(
        inputs,
        outputs,
        spec.hidden,
        orders,
        condition,
        activation=spec.activation,
        init=spec.init,
        dropout=spec.dropout,
        residual=spec.residual,
        bias=spec.bias,
    )
