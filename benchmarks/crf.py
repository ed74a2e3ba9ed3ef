"""A conditional random field over tags: loss with gradient and best paths against pytorch-crf; entities of WNUT-17.

Times are of 32 sentences with 13 tags, given the scores of each word. The tagger is `Classifier(Chain(), …)` over the
words' hashed forms (itself, its neighbours, prefixes, suffixes, shape), without pre-trained vectors.
"""

from __future__ import annotations

import gzip
import re
import time
import zlib

import numpy as np
import torch
from torch import Tensor, nn

from likely import Classifier
from likely.data import text
from likely.data.rows import Ragged
from likely.evaluate import entity_f1
from likely.inference import MAP
from likely.likelihoods import Chain
from likely.networks import LSTM
from likely.optim import Adam
from likely.probability.chains import LabelPaths, label_log_prob

from .datasets import FOLDER
from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

SENTENCES, CALLS = 32, 10
BUCKETS = 2**16
CRFSUITE = 0.154
"""Entity F1 on the test sentences of a feature CRF by crfsuite."""


def wnut(part: str) -> tuple[list[list[str]], list[list[str]]]:
    """The words and the tags of each sentence."""
    words, tags = [[]], [[]]  # type: list[list[str]], list[list[str]]
    with gzip.open(FOLDER / f"wnut17_{part}.conll.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            word, _, tag = line.rstrip("\n").partition("\t")
            if tag:
                words[-1].append(word)
                tags[-1].append(tag)
            elif words[-1]:
                words.append([])
                tags.append([])
    return [own for own in words if own], [own for own in tags if own]


def forms(words: list[str]) -> np.ndarray:
    """Hashed forms of each word and of its neighbours: (words, forms) of integers below BUCKETS."""
    shapes = [
        re.sub(r"(.)\1+", r"\1\1", re.sub("[0-9]", "0", re.sub("[a-z]", "a", re.sub("[A-Z]", "A", w)))) for w in words
    ]
    lower = ["<s>", "<s>", *(word.lower() for word in words), "</s>", "</s>"]
    shapes = ["<s>", "<s>", *shapes, "</s>", "</s>"]
    rows = []
    for at in range(2, len(words) + 2):
        own, shape = lower[at], shapes[at]
        own_forms = [f"w={own}", f"s={shape}", f"sw={shape}{own}"]
        own_forms += [f"p{k}={own[:k]}" for k in (1, 2, 3)] + [f"e{k}={own[-k:]}" for k in (1, 2, 3, 4)]
        for step in (-2, -1, 1, 2):
            own_forms += [f"w{step}={lower[at + step]}", f"s{step}={shapes[at + step]}"]
        own_forms += [
            f"ss={shapes[at - 1]}{shape}{shapes[at + 1]}",
            f"sn={shape}|{lower[at + 1]}",
            f"sb={lower[at - 1]}|{shape}",
        ]
        rows.append([zlib.crc32(form.encode()) % BUCKETS for form in own_forms])
    return np.array(rows)


class Forms(nn.Module):
    """The sum of what each form says of each tag: a linear model of indicators."""

    def __init__(self, out_features: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(BUCKETS, out_features, mode="sum")
        nn.init.zeros_(self.table.weight)

    def forward(self, x: Ragged) -> Tensor:
        return self.table(x.values)


def timed(repeats: int) -> list[Result]:
    from torchcrf import CRF

    _, tags = wnut("train")
    names = sorted({tag for sentence in tags for tag in sentence})
    chosen = [torch.tensor([names.index(tag) for tag in sentence]) for sentence in tags[:SENTENCES]]
    lengths, y = torch.tensor([len(own) for own in chosen]), torch.cat(chosen)
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    torch.manual_seed(0)
    theirs = CRF(len(names), batch_first=True)
    constants = [theirs.start_transitions, theirs.end_transitions, theirs.transitions]
    ours = [part.detach().clone().requires_grad_() for part in constants]
    scores = torch.randn(len(y), len(names)).requires_grad_()
    present = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    padded, labels = torch.zeros(*present.shape, len(names)), torch.zeros(present.shape, dtype=torch.long)
    padded[present], labels[present] = scores.detach(), y
    padded.requires_grad_()

    def likely_step() -> list[Tensor]:
        for _ in range(CALLS):
            value = label_log_prob(*ours, scores, y, offsets).sum()
            gradients = torch.autograd.grad(value, [scores, *ours])
        return [value.detach(), *gradients]

    def their_step() -> list[Tensor]:
        for _ in range(CALLS):
            value = theirs(padded, labels, mask=present, reduction="sum")
            gradients = torch.autograd.grad(value, [padded, *constants])
        return [value.detach(), gradients[0][present], *gradients[1:]]

    def likely_paths() -> list[int]:
        with torch.no_grad():
            for _ in range(CALLS):
                paths = LabelPaths(*(part.unsqueeze(0) for part in (*ours, scores)), offsets).mode
        return paths.tolist()

    def their_paths() -> list[int]:
        with torch.no_grad():
            for _ in range(CALLS):
                paths = theirs.decode(padded, mask=present)
        return [tag for path in paths for tag in path]

    def same_numbers(mine: list[Tensor], other: list[Tensor]) -> tuple[str, bool]:
        apart = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(mine, other, strict=True))
        words = f"loss and gradients {apart:.0e} apart; {SENTENCES} sentences, {len(names)} tags, CPU seconds"
        return words, apart < 1e-4

    def same_paths(mine: list[int], other: list[int]) -> tuple[str, bool]:
        return f"{sum(a == b for a, b in zip(mine, other, strict=True))} of {len(other)} tags alike", mine == other

    steps = interleave({"likely": likely_step, "pytorch-crf": their_step}, repeats, clock=time.process_time)
    paths = interleave({"likely": likely_paths, "pytorch-crf": their_paths}, repeats, clock=time.process_time)
    return [
        *compare("crf: loss and gradient", steps, same_numbers, {"pytorch-crf": 1 / 10}),
        *compare("crf: best paths", paths, same_paths, {"pytorch-crf": 1 / 15}),
    ]


def tagger() -> Result:
    """Entity F1 on the test sentences; settings were chosen on the development sentences."""
    words, tags = wnut("train")
    test_words, test_tags = wnut("test")
    model = Classifier(
        Chain(),
        lambda in_shape, out_features: Forms(out_features),
        prior="normal(1.0)",
        inference=MAP(Adam(0.02), epochs=4, batch_size=32),
        random_state=0,
    )
    model.fit([forms(own) for own in words], tags)
    f1 = entity_f1(test_tags, [path.tolist() for path in model.predict([forms(own) for own in test_words])])
    dev_words, dev_tags = wnut("dev")
    dev = entity_f1(dev_tags, [path.tolist() for path in model.predict([forms(own) for own in dev_words])])
    quality = f"entity F1 on WNUT-17 test (dev {dev:.3f}), no pre-trained vectors; ratio is of 1 − F1"
    return Result("crf: entities", "crfsuite (published trial)", 1 - f1, 1 - CRFSUITE, quality, f1 > CRFSUITE, 1.0, "")


def tagger_of_words() -> Result:
    """The same from lists of words alone, whose forms a network over steps reads; chosen on the development part."""
    network, training = (
        LSTM(32, bidirectional=True, output="each", dropout=0.5),
        MAP(Adam(5e-3), epochs=4, batch_size=32),
    )
    model = Classifier(Chain(), network, inference=training, tokens=text.Forms(3), random_state=0).fit(*wnut("train"))
    dev, f1 = (entity_f1(tags, model.predict(words)) for words, tags in (wnut("dev"), wnut("test")))
    quality = f"entity F1 on WNUT-17 test (dev {dev:.3f}) by an LSTM; ratio is of 1 − F1"
    name = "crf: entities from words"
    return Result(name, "crfsuite (published trial)", 1 - f1, 1 - CRFSUITE, quality, f1 > CRFSUITE, 1.0, "")


def run(repeats: int = 20) -> list[Result]:
    return with_threads(1, lambda: [*timed(repeats), tagger(), tagger_of_words()])


if __name__ == "__main__":
    show(run())
