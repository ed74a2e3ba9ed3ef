"""The terms of a linear model: what each is called, its estimate, and how it is made of the parameters of the fit.

    x = (raw − centre) / unit      so that in raw columns      βⱼ = bⱼ / unitⱼ,     β₀ = b₀ − Σⱼ bⱼ centreⱼ / unitⱼ

Terms are linear in the parameters (cut points to first order), so their covariance is C Σ Cᵀ with one contrast C.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...inference.linear.design import Design
from ...likelihoods.ordinal import cut_points

__all__ = ["Columns", "contrast_of", "estimates", "is_softmax", "raw_columns", "raw_map", "terms_of"]


class Columns(NamedTuple):
    """What the raw columns behind X are called, and how they became numbers: x = (raw − centre) / unit."""

    names: list[str]
    units: np.ndarray
    centres: np.ndarray


def raw_columns(model: Any) -> Columns | None:
    """The columns of the table that a model was fitted on; None where X was its own."""
    columns: Columns | None = getattr(model, "raw_columns_", None)
    return columns if columns is not None and len(columns.names) == _width(model) else None


def terms_of(model: Any, columns: Columns | None = None) -> tuple[str, ...]:
    """Terms in the order of estimates: for each output, for each number of η (against the first class), each column."""
    outputs = math.prod(model.plan_.positions)
    own = model.posterior_.parameters["network.weight"].shape[1] // outputs
    if is_softmax(model, own):
        heads = [f"{model.classes_[k]}: " for k in range(1, own)]
    else:
        heads = [""] if own == 1 else [f"η{k + 1}: " for k in range(own)]
    places = [""] if outputs == 1 else [f"y{k}: " for k in range(outputs)]
    names = _names(model, columns)
    return tuple(place + head + name for place in places for head in heads for name in names)


def estimates(model: Any, parameters: Mapping[str, Tensor], columns: Columns | None = None) -> Tensor:
    """(members, terms) from stacked weights (members, outputs · own, d) and biases (members, outputs · own)."""
    weight, bias = parameters["network.weight"].double(), parameters.get("network.bias")
    outputs = math.prod(model.plan_.positions)
    softmax = is_softmax(model, weight.shape[1] // outputs)
    whole = weight if bias is None else torch.cat([weight, bias.double().unsqueeze(-1)], -1)
    whole = whole.unflatten(-2, (outputs, -1))
    if model.likelihood_.ordered:  # one number of η, whose intercept is part of the cut points
        cuts = cut_points(parameters["shared"].double()).reshape(len(whole), outputs, 1, -1)
        cuts = cuts if bias is None else cuts - whole[..., -1:]
        whole = torch.cat([whole[..., : weight.shape[-1]], cuts], -1)
    if softmax:
        whole = whole[..., 1:, :] - whole[..., :1, :]
    return (whole @ raw_map(model, columns).T.to(whole)).flatten(-3)


def contrast_of(model: Any, design: Design, output: int, columns: Columns | None = None) -> Tensor:
    """Derivatives of the terms of one regression in its parameters, (terms, parameters)."""
    own = design.layer.out_features // design.outputs
    width = design.layer.in_features + int(design.layer.bias is not None)
    contrast = torch.eye(own * width, design.parameters, dtype=torch.float64)
    if is_softmax(model, own):
        contrast = (contrast.unflatten(0, (own, width))[1:] - contrast.unflatten(0, (own, width))[:1]).flatten(0, 1)
    if model.likelihood_.ordered:
        contrast = _of_cuts(contrast[: design.layer.in_features], design, output)
    to_raw = raw_map(model, columns)
    return (to_raw @ contrast.unflatten(0, (-1, to_raw.shape[1]))).flatten(0, 1)


def raw_map(model: Any, columns: Columns | None) -> Tensor:
    """From the terms of one number of η, in units of x, to those of the raw columns: (terms, terms).

    Cut points stand on the other side of the inequality than w x, so that what centring took away is added to them. A
    model without an intercept has one in raw columns, if these were centred.
    """
    width, constants = _width(model), len(_constants(model))
    if columns is None:
        return torch.eye(width + constants, dtype=torch.float64)
    units, centres = (torch.as_tensor(np.array(part, dtype=np.float64)) for part in columns[1:])
    moved = centres / units * (1.0 if model.likelihood_.ordered else -1.0)
    to_raw = torch.zeros(len(_names(model, columns)), width + constants, dtype=torch.float64)
    to_raw[:width, :width] = torch.diag(1 / units)
    to_raw[width:, :width] = moved
    to_raw[width : width + constants, width:] = torch.eye(constants, dtype=torch.float64)
    return to_raw


def is_softmax(model: Any, own: int) -> bool:
    """Whether only differences between the numbers of η count, so that one class is the reference."""
    return bool(model.likelihood_.labels) and own > 1


def _width(model: Any) -> int:
    return int(model.posterior_.parameters["network.weight"].shape[-1])


def _names(model: Any, columns: Columns | None) -> list[str]:
    """A name for each column of the design, and then for what is not of a column."""
    if columns is not None:
        centred = ["intercept"] if np.any(columns.centres) else []
        return [*columns.names, *(_constants(model) or centred)]
    names = getattr(model, "feature_names_in_", [f"x{i}" for i in range(_width(model))])
    return [str(name) for name in names] + _constants(model)


def _constants(model: Any) -> list[str]:
    """What is not of a column: the intercept, or the cut points between labels in order."""
    if model.likelihood_.ordered:
        return [f"{low} | {high}" for low, high in itertools.pairwise(model.classes_)]
    return ["intercept"] * ("network.bias" in model.posterior_.parameters)


def _of_cuts(columns: Tensor, design: Design, output: int) -> Tensor:
    """Derivatives of the coefficients and of the cut points, less the intercept, in all parameters."""
    assert design.module.shared is not None
    constants = design.module.shared.detach().view(-1, design.shared)[output].double()
    inner = torch.func.jacrev(cut_points)(constants)
    cuts = columns.new_zeros(len(inner), columns.shape[1])
    cuts[:, -design.shared :] = inner
    if design.layer.bias is not None:
        cuts[:, design.layer.in_features] = -1.0
    return torch.cat([columns, cuts])
