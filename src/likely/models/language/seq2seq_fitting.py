"""How an encoder–decoder is trained: pairs of texts as the rows of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.random import isolated
from ...core.spec import as_spec
from ...core.threads import footprint
from ...core.validation import as_weights, device_of
from ...data.rows import Ragged
from ...data.text import as_texts
from ...inference import MAP, Inference, Posterior
from ...inference.work import rows_per_step
from ...optim import AdamW, Cosine
from ..generative.module import UnderCondition
from .bodies import refuse_weights
from .fitting import fitted_to
from .pairs import Pairs
from .seq2seq_module import Seq2SeqModule

__all__ = ["automatic", "module_of", "read_pairs", "trained", "work_of"]

STEPS, BATCH, PASSES = 10_000, 64, 60
MEASURED = 16
"""Tokens by which the work of a network is measured, at most."""


def automatic(rows: int) -> Inference:
    """What `inference="auto"` means for so many pairs: AdamW along a cosine, with decay of weights alone."""
    batch = min(BATCH, rows)
    steps = min(STEPS, max(600, PASSES * (rows // batch)))
    optimizer = AdamW(2e-3, betas=(0.9, 0.98), weight_decay=0.01, only_weights=True)
    return MAP(optimizer, steps=steps, batch_size=batch, schedule=Cosine(final=0.02, warmup=0.1), clip_norm=1.0)


def read_pairs(sources: Any, targets: Any, *, empty: bool = False) -> tuple[Sequence[str], Sequence[str]]:
    """Sources and targets as lists of as many strings; an `empty` target is refused unless it is allowed."""
    given = as_texts(sources, "sources")
    wanted = as_texts(targets, "targets", empty=empty)
    if len(given) != len(wanted):
        raise DataError(f"sources has {len(given)} texts and targets has {len(wanted)}; every source needs its target.")
    return given, wanted


def trained(model: Any, sources: Ragged, targets: Ragged, weight: Tensor | None) -> Posterior:
    """The posterior of a model's network."""
    device = device_of(model.device)
    rows = Pairs.of(sources.to(device), targets.to(device), weight)
    auto = isinstance(model.inference, str) and model.inference == "auto"
    inference = automatic(len(rows)) if auto else as_spec(model.inference, Inference, "inference")

    def encode(X: Any, y: Any, more: Any) -> Pairs:
        given, wanted = read_pairs(X, y)
        own = [model._coded(texts, side, "validation").to(device) for side, texts in enumerate((given, wanted))]
        return Pairs.of(own[0], own[1], as_weights(more, given), inference.dtype)

    tokens = int(targets.lengths.max()) + int(sources.lengths.max())
    work = work_of(model) * tokens * rows_per_step(inference, len(rows))
    return fitted_to(model, rows, inference, encode, work)


def module_of(model: Any) -> Seq2SeqModule:
    """A new module of a model whose vocabularies and longest texts are known."""
    encoder, decoder = model._bodies()
    vocabularies = model.vocabularies_
    symbols = (vocabularies[0].size + 1, vocabularies[-1].size + 1)
    for spec, count, longest in zip((encoder, decoder), symbols, model.longest_, strict=True):
        refuse_weights(spec, count, longest)
    return Seq2SeqModule(
        encoder,
        decoder,
        model.attention,
        symbols=symbols,
        longest=model.longest_,
        shared=len(vocabularies) == 1,
        smoothing=model.smoothing,
    )


def work_of(model: Any) -> float:
    """Multiply-adds of the largest operation of a model's network, for one token."""
    source, target = (min(longest, MEASURED) for longest in model.longest_)
    with isolated(0):
        module = module_of(model).eval()
        sources = torch.zeros(2, source, dtype=torch.long)
        pair: Any = UnderCondition(module, sources)  # type: ignore[arg-type]
        return footprint(pair, torch.zeros(2, target + 1, dtype=torch.long)).work / (source + target)
