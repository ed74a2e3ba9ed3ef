"""How a language model with a network is trained: windows of text as the rows of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import TrainingError
from ...core.random import isolated, seed_of
from ...core.shapes import without_numbers
from ...core.spec import as_spec
from ...core.threads import footprint, threads_for
from ...core.validation import as_weights, device_of
from ...data.text import as_texts
from ...inference import MAP, Inference, Posterior, Problem
from ...inference.objective import RowDensity, refuse
from ...inference.work import rows_per_step
from ...optim import AdamW, Cosine
from ...priors import Prior
from .module import LanguageModule
from .texts import joined
from .windows import Windows

__all__ = ["automatic", "blank", "trained", "work_of"]

STEPS, BATCH = 3_000, 16
MEASURED = 64
"""Tokens by which the work of a network is measured, at most."""


def automatic(windows: int) -> Inference:
    """What `inference="auto"` means for so many windows: AdamW along a cosine, with decay of weights alone."""
    batch = min(BATCH, windows)
    steps = min(STEPS, max(200, 30 * (windows // batch)))
    optimizer = AdamW(2e-3, betas=(0.9, 0.99), weight_decay=0.1, only_weights=True)
    return MAP(optimizer, steps=steps, batch_size=batch, schedule=Cosine(final=0.02, warmup=0.05), clip_norm=1.0)


def trained(model: Any, values: np.ndarray, offsets: np.ndarray, weight: Tensor | None) -> Posterior:
    """The posterior of a model's network, from texts that lie one after the other."""
    device = device_of(model.device)

    def windows(values: np.ndarray, offsets: np.ndarray, weight: Tensor | None, dtype: torch.dtype) -> Windows:
        texts, starts = torch.from_numpy(values), torch.from_numpy(offsets)
        return Windows.of(texts, starts, model.context, weight, dtype).on(device)

    rows = windows(values, offsets, weight, torch.float32)
    auto = isinstance(model.inference, str) and model.inference == "auto"
    inference = automatic(len(rows)) if auto else as_spec(model.inference, Inference, "inference")

    def encode(texts: Any, _: Any, more: Any) -> Windows:
        given = as_texts(texts, "validation")
        own = as_weights(more, given)
        return windows(*joined(model.vocabulary_, given, model.ends_, "validation"), own, inference.dtype)

    def build(seed: int) -> LanguageModule:
        with isolated(seed):
            return _module(model)

    problem = Problem(
        build=build,
        objective=RowDensity(type(model).__name__),
        prior=as_spec(model.prior, Prior, "prior"),
        data=rows.to(inference.dtype),
        seed=distributed.agreed(seed_of(model.random_state)),
        seeded=model.random_state is not None,
        encode=encode,
        title=type(model).__name__,
        verbose=bool(model.verbose),
    )
    refuse(inference, problem.objective)
    with threads_for(work_of(model) * rows.context * rows_per_step(inference, len(rows))):
        posterior = inference.fit(problem)
    for name, value in posterior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise TrainingError(f"The fit ended with parameters that are not finite ({name}); try a smaller rate.")
    return posterior


def work_of(model: Any) -> float:
    """Multiply-adds of the largest operation of a model's network, for one token."""
    tokens = min(model.context, MEASURED)
    with isolated(0):
        return footprint(_module(model).eval(), torch.zeros(2, tokens + 1, dtype=torch.long)).work / tokens


def blank(model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
    """The posterior in a file, for the module that the model's specs build."""
    try:
        with without_numbers():
            module = _module(model)
    except (RuntimeError, NotImplementedError):  # a network whose building needs real numbers
        with isolated(0):
            module = _module(model)
    return Posterior.kinds[learned["kind"]].restore(module, learned, tensors)


def _module(model: Any) -> LanguageModule:
    symbols, outputs = model._sizes()
    return LanguageModule(model.network, symbols, outputs, model.context)
