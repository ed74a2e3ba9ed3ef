"""Tiny Shakespeare, the last tenth held out: nanoGPT's setting for a processor, a recurrent network, and 7-grams.

nanoGPT's setting is 4 layers of 4 heads, 128 wide, 64 characters of context, batches of 12, 2,000 steps, no bias, tied
embedding, AdamW with betas (0.9, 0.99), decay 0.1 of matrices alone, gradients clipped at 1; here with rates from 2e-3
to 4e-5, by which its own code comes to 1.80 nats per character over the whole validation text. The peer of a step is
that model and loop in plain torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from likely import LanguageModel
from likely.inference import MAP
from likely.models.language import NGram
from likely.networks import LRU, LSTM, Network, Transformer
from likely.optim import AdamW, Cosine

from .datasets import FOLDER
from .timing import Result, interleave, show

__all__ = ["run"]

WIDTH, HEADS, LAYERS, CONTEXT, BATCH, STEPS = 128, 4, 4, 64, 12, 2_000
HIGH, LOW, WARM = 2e-3, 4e-5, 100
NATS = {"GPT": 1.81, "7-gram": 1.52, "LSTM": 1.72, "LRU": None}
TIMED = 60
"""Steps of one repeat of the comparison of times."""
RECURRENT: dict[str, tuple[Network, int, int]] = {
    "LSTM": (LSTM(256), 3_000, 16),
    "LRU": (LRU(256, 256, layers=2), 2_000, 16),
}
"""Networks, steps and batches."""


def run(repeats: int = 5) -> list[Result]:
    text = _text()
    split = int(0.9 * len(text))
    known, new = text[:split], text[split:]
    return [counted(known, new), *(learned(name, known, new) for name in ("GPT", *RECURRENT)), step(known, repeats)]


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


def step(known: str, repeats: int) -> Result:
    """A training step of the GPT, one core, in blocks of steps that take turns."""
    part = known[:100_000]
    tokens = torch.from_numpy(LanguageModel(NGram(1)).fit(part).vocabulary_.encode(part))
    model = LanguageModel(gpt(), context=CONTEXT, inference=trained(TIMED), random_state=0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        calls = {"likely": lambda: model.fit(part).history_ is not None, "nanoGPT": _loop(tokens)}
        timed = interleave(calls, repeats)
    finally:
        torch.set_num_threads(threads)
    ours, theirs = (timed[name] for name in calls)
    per = 1 / TIMED
    least = (ours.least * per, theirs.least * per)
    words = f"a step of {BATCH} windows, {TIMED} in a row with all that a fit does around them; the loop in plain torch"
    name = "language, step of the GPT"
    return Result(name, "nanoGPT", ours.median * per, theirs.median * per, words, True, 1.0, "s", least)


# --- the peer -------------------------------------------------------------------------------------------------------
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


def _loop(tokens: Tensor) -> Callable[[], float]:
    def train() -> float:
        random = torch.Generator().manual_seed(0)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = _GPT(int(tokens.max()) + 1)
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
