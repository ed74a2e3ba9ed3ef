"""Tiny Shakespeare, the last tenth held out: nanoGPT's setting for a processor, recurrent networks, 7-grams, a blend.

nanoGPT's setting is 4 layers of 4 heads, 128 wide, 64 characters of context, batches of 12, 2,000 steps, no bias, tied
embedding, AdamW with betas (0.9, 0.99), decay 0.1 of matrices alone, gradients clipped at 1; here with rates from 2e-3
to 4e-5, by which its own code comes to 1.80 nats per character over the whole validation text. The peers of a step are
that model and loop in plain torch, and the same loop over Hugging Face's GPT-2 of that size; the peer of drawing is its
`generate`. Times are CPU seconds of one core in blocks that take turns, so that a busy machine tells the same ratio.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from likely import LanguageModel
from likely.data.text import BPE
from likely.inference import MAP
from likely.models.language import Blend, NGram
from likely.networks import LRU, LSTM, Network, Transformer
from likely.optim import AdamW, Cosine

from .datasets import FOLDER
from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

WIDTH, HEADS, LAYERS, CONTEXT, BATCH, STEPS = 128, 4, 4, 64, 12, 2_000
HIGH, LOW, WARM = 2e-3, 4e-5, 100
NATS = {"GPT": 1.81, "7-gram": 1.52, "LSTM": 1.72, "LRU": None, "blend": 1.50}
MINUTES = 10.0
"""Of the blend, on as many cores as there are."""
TIMED = 60
"""Steps of one repeat of the comparison of times."""
SIZE = 1_000
"""Kinds of byte pairs."""
DRAWN = 256
"""Tokens that are drawn, and the context of the models that draw them: they start with nothing."""
RECURRENT: dict[str, tuple[Network, int, int]] = {
    "LSTM": (LSTM(256), 4_000, 16),
    "LRU": (LRU(256, 256, layers=2), 2_000, 16),
}
"""Networks, steps and batches."""
BLEND = (Blend(NGram(7), LSTM(256)), 3_000, 16)


def run(repeats: int = 5) -> list[Result]:
    text = _text()
    split = int(0.9 * len(text))
    known, new = text[:split], text[split:]
    results = [counted(known, new), blended(known, new), *(learned(name, known, new) for name in ("GPT", *RECURRENT))]
    results += pieces(text, repeats)
    results += with_threads(1, lambda: steps(known, repeats))
    if importlib.util.find_spec("transformers"):
        results += with_threads(1, lambda: drawn(known, repeats))
    return results


def _text() -> str:
    return (FOLDER / "tinyshakespeare.txt").read_text(encoding="utf-8")


def counted(known: str, new: str) -> Result:
    start = time.process_time()
    model = LanguageModel(NGram(7)).fit(known)
    nats = -model.score(new) / len(new)
    seconds = time.process_time() - start
    words = f"nats per character over all {len(new):,} characters, fit and score in {seconds:.1f} s of one core"
    target = NATS["7-gram"]
    return Result("language, Kneser–Ney of order 7", "target", nats, target, words, True, 1.0, "nats")


def blended(known: str, new: str) -> Result:
    """What ten minutes can reach: counts beside a recurrent network."""
    network, steps, batch = BLEND
    start, work = time.perf_counter(), time.process_time()
    model = LanguageModel(network, context=CONTEXT, inference=trained(steps, batch), random_state=0).fit(known)
    minutes, core_minutes = (time.perf_counter() - start) / 60, (time.process_time() - work) / 60
    nats = -model.score(new) / len(new)
    weights = ", ".join(f"{weight:.2f}" for weight in model.blend_weights_)
    words = (
        f"nats per character over all {len(new):,} characters; {steps:,} steps of {batch} windows in {minutes:.1f} min "
        f"({core_minutes:.1f} of one core); weights of counts by known tokens {weights}"
    )
    return Result(
        "language, blend of 7-grams and an LSTM", "target", nats, NATS["blend"], words, minutes <= MINUTES, 1.0, "nats"
    )


def gpt() -> Transformer:
    return Transformer(WIDTH, HEADS, LAYERS, bias=False, tied=True)


def trained(steps: int, batch: int = BATCH) -> MAP:
    optimizer = AdamW(HIGH, betas=(0.9, 0.99), weight_decay=0.1, only_weights=True)
    return MAP(optimizer, steps=steps, batch_size=batch, clip_norm=1.0, schedule=Cosine(LOW / HIGH, warmup=WARM))


def learned(name: str, known: str, new: str) -> Result:
    """Nats by windows that stand side by side, as nanoGPT evaluates; `log_prob` reads half a window more."""
    network, steps, batch = RECURRENT.get(name, (gpt(), STEPS, BATCH))
    start = time.process_time()
    model = LanguageModel(network, context=CONTEXT, inference=trained(steps, batch), random_state=0).fit(known)
    seconds = time.process_time() - start
    nats, overlapping = apart(model, new), -model.score(new) / len(new)
    target = NATS[name]
    words = (
        f"nats per character by windows of {CONTEXT} side by side, {overlapping:.3f} by log_prob, which lets them "
        f"overlap; {steps:,} steps of {batch} windows in {seconds:.0f} s of CPU"
    )
    return Result(
        f"language, {name}", "target", nats, target or nats, words, True, None if target is None else 1.0, "nats"
    )


@torch.no_grad()
def apart(model: LanguageModel, new: str) -> float:
    """Mean −log p of all characters, each from those before it in its own window."""
    tokens = np.concatenate([[model.vocabulary_.size], model.vocabulary_.encode(new)])
    count = -(-len(new) // CONTEXT)
    padded = np.full(count * CONTEXT + 1, -1)
    padded[: len(tokens)] = tokens
    windows = torch.from_numpy(np.stack([padded[i * CONTEXT : (i + 1) * CONTEXT + 1] for i in range(count)]))
    total = sum(float(model.posterior_.module(part).double().sum()) for part in windows.split(500))
    return -total / len(new)


def pieces(text: str, repeats: int) -> list[Result]:
    """Byte pairs of the whole text, against the library they are made with, used by itself."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    ours, theirs = BPE(SIZE).fit([text]), Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=SIZE, show_progress=False, initial_alphabet=alphabet)
    theirs.train_from_iterator([text], trainer)
    calls = {"likely": lambda: len(ours.encode(text)), "tokenizers": lambda: len(theirs.encode(text).ids)}
    timed = interleave(calls, repeats, clock=time.process_time)

    def quality(mine: int, other: int) -> tuple[str, bool]:
        return f"{mine:,} and {other:,} tokens of {SIZE:,} kinds; CPU seconds", abs(mine - other) < 0.02 * other

    return compare("language, byte pairs of 1.1 million characters", timed, quality, {"tokenizers": 1.05})


def steps(known: str, repeats: int) -> list[Result]:
    """A training step of the GPT, one core, in blocks of steps that take turns."""
    part = known[:100_000]
    tokens = torch.from_numpy(LanguageModel(NGram(1)).fit(part).vocabulary_.encode(part))
    symbols = int(tokens.max()) + 1
    model = LanguageModel(gpt(), context=CONTEXT, inference=trained(TIMED), random_state=0)
    calls = {"likely": lambda: model.fit(part).history_ is not None, "nanoGPT": _loop(tokens, lambda: _GPT(symbols))}
    targets = {"nanoGPT": 1.0}
    if importlib.util.find_spec("transformers"):
        calls["Hugging Face"] = _loop(tokens, lambda: _Theirs(symbols))
        targets["Hugging Face"] = 1 / 1.25
    words = f"a step of {BATCH} windows, {TIMED} in a row with all that a fit does around them; CPU seconds of one core"
    timed = interleave(calls, repeats, clock=time.process_time)
    results = compare("language, step of the GPT", timed, lambda *_: (words, True), targets)
    least = [result.least or (0.0, 0.0) for result in results]
    return [
        replace(own, likely=own.likely / TIMED, other=own.other / TIMED, least=(low / TIMED, high / TIMED))
        for own, (low, high) in zip(results, least, strict=True)
    ]


def drawn(known: str, repeats: int) -> list[Result]:
    """256 tokens from nothing, for one row and for 16, with keys and values kept."""
    from transformers import GPT2LMHeadModel

    model = LanguageModel(gpt(), context=DRAWN, inference=trained(1), random_state=0).fit(known[:20_000])
    first = model.vocabulary_.size
    theirs = GPT2LMHeadModel(_configuration(first + 1, DRAWN + 1, first)).eval()

    def generate(rows: int) -> int:
        start = torch.full((rows, 1), first)
        options = {"do_sample": True, "top_k": 0, "max_new_tokens": DRAWN, "use_cache": True}
        with torch.no_grad():
            return theirs.generate(start, attention_mask=torch.ones_like(start), **options).shape[1] - 1

    results = []
    for rows, target in ((1, 1 / 5), (16, 1 / 2.5)):
        calls = {
            "likely": lambda rows=rows: len(model.sample(rows, length=DRAWN)[0]),
            "Hugging Face": lambda rows=rows: generate(rows),
        }
        words = f"{DRAWN} tokens, weights as they start; CPU seconds of one core"
        timed = interleave(calls, repeats, clock=time.process_time)
        name = f"language, drawing {rows} row{'s' if rows > 1 else ''}"
        same = lambda mine, other, words=words: (words, mine == other == DRAWN)  # noqa: E731
        results += compare(name, timed, same, {"Hugging Face": target})
    return results


# --- the peers -------------------------------------------------------------------------------------------------------
class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.attention, self.project = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        rows, steps, _ = x.shape
        parts = self.attention(self.first(x)).split(WIDTH, 2)
        query, key, value = (part.view(rows, steps, HEADS, -1).transpose(1, 2) for part in parts)
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(heads.transpose(1, 2).reshape(rows, steps, WIDTH))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class _GPT(nn.Module):
    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(tokens, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(_Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH, bias=False), nn.Linear(WIDTH, tokens, bias=False)
        self.embed.weight = self.head.weight
        for name, value in self.named_parameters():
            if value.ndim > 1:
                last = name.endswith(("project.weight", "down.weight"))
                nn.init.normal_(value, std=0.02 / (2 * LAYERS) ** 0.5 if last else 0.02)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        h = self.embed(x) + self.positions(torch.arange(x.shape[1]))
        return functional.cross_entropy(self.head(self.norm(self.blocks(h))).flatten(0, 1), y.flatten())


def _configuration(symbols: int, longest: int, first: int | None = None) -> Any:
    """GPT-2 of the size of ours."""
    from transformers import GPT2Config

    size: dict[str, Any] = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": longest}
    rest = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2Config(vocab_size=symbols, bos_token_id=first, eos_token_id=None, pad_token_id=first, **size, **rest)


class _Theirs(nn.Module):
    def __init__(self, symbols: int) -> None:
        from transformers import GPT2LMHeadModel

        super().__init__()
        self.inner = GPT2LMHeadModel(_configuration(symbols, CONTEXT))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(self.inner(x, use_cache=False).logits.flatten(0, 1), y.flatten())


def _loop(tokens: Tensor, build: Callable[[], nn.Module]) -> Callable[[], float]:
    def train() -> float:
        random = torch.Generator().manual_seed(0)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = build()
        matrices = [value for value in model.parameters() if value.ndim > 1]
        vectors = [value for value in model.parameters() if value.ndim < 2]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=HIGH, betas=(0.9, 0.99))
        schedule = Cosine(LOW / HIGH, warmup=WARM)
        for at in range(TIMED):
            for group in optimizer.param_groups:
                group["lr"] = HIGH * schedule.factor(at, TIMED)
            starts = torch.randint(len(tokens) - CONTEXT, (BATCH,), generator=random).tolist()
            x = torch.stack([tokens[i : i + CONTEXT] for i in starts])
            y = torch.stack([tokens[i + 1 : i + 1 + CONTEXT] for i in starts])
            loss = model(x, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return loss.item()

    return train


if __name__ == "__main__":
    show(run())
