"""How a language model with a network is trained: pieces of text as the rows of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ...core import distributed
from ...core.errors import SpecError, TrainingError
from ...core.random import isolated, seed_of
from ...core.shapes import without_numbers
from ...core.spec import as_spec
from ...core.threads import footprint, threads_for
from ...data.text import Tokens, Vocabulary
from ...inference import MAP, Inference, Posterior, Problem
from ...inference.dataset import Dataset
from ...inference.objective import RowDensity, refuse
from ...inference.training.fine_tune import vocabulary_at_start
from ...inference.work import rows_per_step
from ...optim import AdamW, Cosine
from ...priors import Prior
from .masked_rows import SentencePairs
from .windows import Windows

__all__ = ["automatic", "blank", "fitted_to", "trained", "vocabulary_for", "work_of"]

STEPS, BATCH = 3_000, 16
MEASURED = 64
"""Tokens by which the work of a network is measured, at most."""


def automatic(windows: int) -> Inference:
    """What `inference="auto"` means for so many windows: AdamW along a cosine, with decay of weights alone."""
    batch = min(BATCH, windows)
    steps = min(STEPS, max(200, 30 * (windows // batch)))
    optimizer = AdamW(2e-3, betas=(0.9, 0.99), weight_decay=0.1, only_weights=True)
    return MAP(optimizer, steps=steps, batch_size=batch, schedule=Cosine(final=0.02, warmup=0.05), clip_norm=1.0)


def trained(
    model: Any,
    data: Windows | SentencePairs,
    encode: Callable[[Any, Any], Dataset],
    auto: Callable[[int], Inference],
    kind: Literal["exact", "estimate"] = "exact",
) -> Posterior:
    """The posterior of a model's network, from pieces of text; `encode` makes those of validation texts."""
    chosen = isinstance(model.inference, str) and model.inference == "auto"
    inference = auto(len(data)) if chosen else as_spec(model.inference, Inference, "inference")

    work = work_of(model) * data.context * rows_per_step(inference, len(data))
    return fitted_to(model, data, inference, lambda texts, _, weight: encode(texts, weight), work, kind)


def fitted_to(
    model: Any,
    data: Dataset,
    inference: Inference,
    encode: Callable[[Any, Any, Any], Dataset],
    work: float,
    kind: Literal["exact", "estimate"] = "exact",
) -> Posterior:
    """The posterior of the module of a model; `work` is that of its largest operation."""

    def build(seed: int) -> nn.Module:
        with isolated(seed):
            return model._module()

    problem = Problem(
        build=build,
        objective=RowDensity(type(model).__name__, kind),
        prior=as_spec(model.prior, Prior, "prior"),
        data=data.to(inference.dtype),
        seed=distributed.agreed(seed_of(model.random_state)),
        seeded=model.random_state is not None,
        encode=lambda *given: encode(*given).to(inference.dtype),
        vocabulary=getattr(model, "vocabulary_", None),
        title=type(model).__name__,
        verbose=bool(model.verbose),
    )
    refuse(inference, problem.objective)
    with threads_for(work):
        posterior = inference.fit(problem)
    for name, value in posterior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise TrainingError(f"The fit ended with parameters that are not finite ({name}); try a smaller rate.")
    return posterior


def vocabulary_for(model: Any, texts: Sequence[str]) -> Vocabulary:
    """The vocabulary of texts, or that of the model which the inference begins at."""
    own = as_spec(model.tokens, Tokens, "tokens").fit(texts)
    known = vocabulary_at_start(model.inference)
    if known is not None and type(known) is not type(own):
        raise SpecError(f"tokens={model.tokens!r}, but the start of FineTune cuts text into {known.kind}.")
    return own if known is None else known


def work_of(model: Any) -> float:
    """Multiply-adds of the largest operation of a model's network, for one token."""
    tokens = min(model.context, MEASURED)
    with isolated(0):
        return footprint(model._module().network.eval(), torch.zeros(2, tokens, dtype=torch.long)).work / tokens


def blank(model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
    """The posterior in a file, for the module that the model's specs build."""
    try:
        with without_numbers():
            module = model._module()
    except (RuntimeError, NotImplementedError):  # a network whose building needs real numbers
        with isolated(0):
            module = model._module()
    return Posterior.kinds[learned["kind"]].restore(module, learned, tensors)
