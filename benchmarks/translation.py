"""Multi30k, German to English: BLEU of captions of photographs after some minutes of one core, and the time of a step.

29,000 pairs to learn from, 1,000 to translate (the test set of 2016). Byte pairs of both languages together, a
transformer of 3 + 2 layers, 256 wide, tied vectors, smoothed labels, averaged weights; and a recurrent network with
attention. BLEU is sacreBLEU's, of whole sentences as they are written. The peer of a step is the Marian of Hugging Face
of the same size, on the same batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from likely import Seq2Seq
from likely.data.text import BPE
from likely.decoding import Beam, Decoding, Greedy
from likely.inference import EMA, MAP
from likely.models.language.pairs import Pairs
from likely.networks import GRU, Transformer
from likely.optim import AdamW, Cosine

from .datasets import multi30k
from .timing import Result, interleave, show

__all__ = ["run"]

WIDTH, HEADS, HIDDEN, LAYERS, VOCABULARY, BATCH, EPOCHS = 256, 4, 512, (3, 2), 4_000, 64, 6
RATE, DROPOUT, SMOOTHING, AVERAGE = 1.5e-3, 0.1, 0.1, 0.995
TARGET = 28.0
TIMED, REPEATS = 24, 3
"""Steps of one repeat of the comparison of times."""
WAYS: dict[str, Decoding] = {"greedy": Greedy(), "beam of 5": Beam(5, length_penalty=1.0)}


def run(repeats: int = REPEATS) -> list[Result]:
    pairs = multi30k()
    import sacrebleu  # noqa: F401  before minutes are spent

    recurrent = (GRU(WIDTH, bidirectional=True, dropout=0.2), GRU(WIDTH, dropout=0.2))
    return [
        *step(pairs["train"], repeats),
        translated("transformer", transformer(), pairs, TARGET),
        translated("recurrent with attention", recurrent, pairs, None),
    ]


def transformer() -> tuple[Transformer, Transformer]:
    """Encoder and decoder."""
    shape = {"hidden": HIDDEN, "dropout": DROPOUT, "positions": "sinusoidal", "activation": "relu", "tied": True}
    encoder, decoder = (Transformer(WIDTH, HEADS, layers, **shape) for layers in LAYERS)  # type: ignore[arg-type]
    return encoder, decoder


def model_of(bodies: tuple[Any, Any], **more: Any) -> Seq2Seq:
    optimizer = AdamW(RATE, betas=(0.9, 0.98), weight_decay=0.01, only_weights=True)
    schedule = Cosine(final=0.02, warmup=0.08)
    inference = MAP(optimizer, batch_size=BATCH, schedule=schedule, clip_norm=1.0, average=EMA(AVERAGE), **more)
    return Seq2Seq(*bodies, tokens=BPE(VOCABULARY), smoothing=SMOOTHING, inference=inference, random_state=0)


def translated(name: str, bodies: tuple[Any, Any], pairs: dict[str, Any], target: float | None) -> Result:
    """BLEU of the test set: 100 − BLEU is what a result compares, for which less is better."""
    from sacrebleu.metrics import BLEU

    start = time.process_time()
    model = model_of(bodies, epochs=EPOCHS).fit(*pairs["train"])
    seconds = time.process_time() - start
    nats = np.log(model.perplexity(*pairs["val"]))
    sources, references = pairs["test"]
    metric, scores = BLEU(), {}
    for way, decoding in WAYS.items():
        scores[way] = metric.corpus_score(model.predict(sources, decoding, length=60), [references]).score
    best = max(scores.values())
    words = (
        f"{', '.join(f'BLEU {score:.1f} {way}' for way, score in scores.items())} ({metric.get_signature()}); "
        f"{nats:.3f} nats per token of the validation set; {EPOCHS} epochs in {seconds / 60:.0f} min of one core"
    )
    other = 100 - (best if target is None else target)
    limit = None if target is None else 1.0
    return Result(f"Multi30k, {name}", "target", 100 - best, other, words, True, limit, "100 − BLEU")


def step(pairs: tuple[list[str], list[str]], repeats: int) -> list[Result]:
    """A training step on batches of 64 pairs of similar lengths, one core, in blocks of steps that take turns."""
    known = tuple(part[: TIMED * BATCH] for part in pairs)
    model = model_of(transformer(), steps=TIMED)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model.fit(*known)
        calls = {"likely": lambda: model.fit(*known) is not None, "Marian": _marian(model, known)}
        timed = interleave(calls, repeats, clock=time.process_time)
    finally:
        torch.set_num_threads(threads)
    ours, theirs = (timed[name] for name in calls)
    least = (ours.least / TIMED, theirs.least / TIMED)
    words = (
        f"CPU seconds of a step of {BATCH} pairs, {TIMED} in a row; ours with all that a fit does around them (the "
        "vocabulary too), smoothed labels and averaged weights, theirs the loop alone"
    )
    name = "Multi30k, step of the transformer"
    return [Result(name, "Marian", ours.median / TIMED, theirs.median / TIMED, words, True, 1.0, "s", least)]


def _marian(model: Seq2Seq, pairs: tuple[list[str], ...]) -> Callable[[], bool]:
    """The same steps by Hugging Face's model, with batches that are made beforehand."""
    from transformers import MarianConfig, MarianMTModel

    size = model.vocabularies_[0].size + 1
    rows = Pairs.of(*(model._coded(texts, side) for side, texts in enumerate(pairs)))
    order = rows.order(torch.Generator().manual_seed(0), BATCH)
    batches = [rows.batch(index) for index in order.split(BATCH)]
    config = MarianConfig(
        vocab_size=size + 1,
        d_model=WIDTH,
        encoder_layers=LAYERS[0],
        decoder_layers=LAYERS[1],
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=HIDDEN,
        decoder_ffn_dim=HIDDEN,
        activation_function="relu",
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        activation_dropout=DROPOUT,
        max_position_embeddings=512,
        pad_token_id=size,
        eos_token_id=size - 1,
        decoder_start_token_id=size - 1,
        forced_eos_token_id=None,
    )
    peer = MarianMTModel(config).train()
    optimizer = torch.optim.AdamW(peer.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True)

    def steps() -> bool:
        for batch in batches:
            sources, targets = batch.condition, batch.x
            loss = peer(
                input_ids=sources.masked_fill(sources < 0, size),
                attention_mask=(sources >= 0).long(),
                decoder_input_ids=targets[:, :-1].masked_fill(targets[:, :-1] < 0, size),
                labels=targets[:, 1:].masked_fill(targets[:, 1:] < 0, -100),
            ).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
            optimizer.step()
        return True

    return steps


if __name__ == "__main__":
    show(run())
