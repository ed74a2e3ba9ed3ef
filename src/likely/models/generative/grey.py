"""Grey pixels under a Bernoulli likelihood: probabilities of a 1, from which binary pixels are drawn in each batch.

x ~ Bernoulli(grey),  anew in each epoch      max E_x[ log p(x; θ) ]
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.spec import as_spec
from ...data.augment import Binarise
from ...inference import MAP, Inference
from ...likelihoods import Bernoulli, Likelihood
from .rows import augmentation

__all__ = ["drawn_anew"]


def drawn_anew(inference: Inference, likelihood: Any, x: Tensor, *, chosen: bool) -> Inference:
    """The inference that fits a likelihood to rows x: where those are grey and it is Bernoulli, one that draws pixels.

    One that the user has `chosen` is not changed: an error says what it lacks.

    >>> drawn_anew(MAP(), Bernoulli(), torch.tensor([[0.0, 0.5]]), chosen=False).augment
    Binarise()
    >>> drawn_anew(MAP(), Bernoulli(), torch.tensor([[0.0, 1.0]]), chosen=False).augment
    """
    if augmentation(inference) is not None or not _is_bernoulli(likelihood):
        return inference
    between = torch.logical_and(x > 0, x < 1).flatten(1)
    if not bool(between.any()) or not bool(((x >= 0) & (x <= 1)).all()):
        return inference
    if isinstance(inference, MAP) and not chosen:
        return inference.replace(augment=Binarise())
    row, column = between.nonzero()[0].tolist()
    raise DataError(
        f"X has values between 0 and 1 ({float(x.flatten(1)[row, column]):g} at row {row}), and Bernoulli needs labels "
        "0 and 1. inference=MAP(augment=Binarise()) takes them as probabilities of a 1 and draws labels in each batch."
    )


def _is_bernoulli(likelihood: Any) -> bool:
    if isinstance(likelihood, str) and likelihood != "auto":
        likelihood = as_spec(likelihood, Likelihood, "likelihood")
    return isinstance(likelihood, Bernoulli)
