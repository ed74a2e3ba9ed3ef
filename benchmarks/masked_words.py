"""Masked words of SST-2, and what they are worth: pre-training on its sentences without labels, then 500 labels.

Three lines. The first is the error at naming a hidden word of the test sentences, each word hidden in its turn, beside
a table of what stood between the same two neighbours in the training sentences (then what goes with both apart, with
one of them, or the most frequent word). The second is the error of a classifier that was fine-tuned on 500 labels from
there, beside that of the same network from random weights, over 10 draws of the 500; the third is beside naive Bayes
over words and pairs of words. Words are those that are there three times or more.
"""

from __future__ import annotations

import gzip
import time
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from likely import Classifier, MaskedLanguageModel, NaiveBayes
from likely.data.text import Words
from likely.inference import MAP, FineTune, Inference
from likely.likelihoods import Poisson
from likely.networks import GRU
from likely.optim import Adam, AdamW, Cosine

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["run"]

NETWORK = GRU(64, bidirectional=True, dropout=0.1)
STEPS, BATCH, MASK, RATE = 2_000, 64, 0.2, 1e-2
LABELS, SEEDS = 500, 10
SUPERVISED = MAP(Adam(2e-2), epochs=6, batch_size=32, schedule=Cosine(final=0.1))
"""Best for both starts among rates of 2e-3 to 2e-2, by other draws of the 500 and other training sentences."""
BLOCK = 200
"""Sentences whose words are asked for at once."""


class Reviews(NamedTuple):
    """Sentences with their labels."""

    texts: list[str]
    labels: np.ndarray


def run(repeats: int = 1) -> list[Result]:
    train, test = (read(part) for part in ("train", "test"))
    start = time.process_time()
    base = pretrained(train.texts)
    seconds = time.process_time() - start
    print(f"pre-trained in {seconds:.0f} s of CPU", flush=True)
    return [named(base, train.texts, test.texts, seconds), *tuned(base, train, test)]


def read(part: str) -> Reviews:
    """The sentences of a part of SST-2."""
    with gzip.open(FOLDER / "sst2.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    own = [row for row in rows if row[0] == part]
    return Reviews([row[2] for row in own], np.array([int(row[1]) for row in own]))


def pretrained(texts: list[str]) -> MaskedLanguageModel:
    optimizer = AdamW(RATE, betas=(0.9, 0.98), weight_decay=0.01, only_weights=True)
    schedule = Cosine(final=0.02, warmup=0.05)
    inference = MAP(optimizer, steps=STEPS, batch_size=BATCH, schedule=schedule, clip_norm=1.0)
    return MaskedLanguageModel(NETWORK, Words(min_count=3), mask=MASK, inference=inference, random_state=0).fit(texts)


# --- words ------------------------------------------------------------------------------------------------------------
def named(base: MaskedLanguageModel, known: list[str], new: list[str], seconds: float) -> Result:
    """The error at words of the vocabulary, by the network and by the table, at the same places."""
    vocabulary = base.vocabulary_
    between = Neighbours([vocabulary.encode(text).tolist() for text in known], vocabulary.size)
    asked = np.array([word.isalpha() for word in vocabulary.words] + [False])
    hits, by_table, total = 0, 0, 0
    for first in range(0, len(new), BLOCK):
        coded = [vocabulary.encode(text) for text in new[first : first + BLOCK]]
        places = [(row, t) for row, own in enumerate(coded) for t in np.flatnonzero(asked[own]).tolist()]
        true = np.array([coded[row][t] for row, t in places])
        hits += int((guesses(base, coded, places) == true).sum())
        by_table += int((np.array([between.guess(coded[row].tolist(), t) for row, t in places]) == true).sum())
        total += len(places)
    words = (
        f"error at {total:,} words of {len(new):,} held-out sentences; right are {hits / total:.1%} by the network and "
        f"{by_table / total:.1%} by the table; pre-training took {seconds:.0f} s of CPU"
    )
    mine, other = 1 - hits / total, 1 - by_table / total
    return Result("masked words, SST-2", "table of neighbours", mine, other, words, True, 1.0, "error")


def guesses(base: MaskedLanguageModel, coded: list[np.ndarray], places: list[tuple[int, int]]) -> np.ndarray:
    """The most probable token at each place, given the rest of its sentence."""
    values, offsets = np.concatenate(coded), np.cumsum([0, *map(len, coded)])
    owner, place = np.array(places).T
    return np.concatenate([own.argmax(1).numpy() for _, own in base._reader().at(values, offsets, owner, place)])


class Neighbours:
    """What stood between two neighbours most often; if nothing did, what goes with both apart, or with one of them."""

    def __init__(self, sentences: list[list[int]], size: int) -> None:
        self.edge = size
        self.both: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        self.after: dict[int, Counter[int]] = defaultdict(Counter)
        self.before: dict[int, Counter[int]] = defaultdict(Counter)
        self.count: Counter[int] = Counter()
        for own in sentences:
            padded = [size, *own, size]
            for left, word, right in zip(padded, padded[1:], padded[2:], strict=False):
                self.both[left, right][word] += 1
                self.after[left][word] += 1
                self.before[right][word] += 1
                self.count[word] += 1

    def guess(self, sentence: list[int], place: int) -> int:
        """The word at this place, from the two beside it."""
        left = sentence[place - 1] if place else self.edge
        right = sentence[place + 1] if place + 1 < len(sentence) else self.edge
        if (left, right) in self.both:
            return self.both[left, right].most_common(1)[0][0]
        after, before = self.after.get(left), self.before.get(right)
        if after and before:
            scores = {word: after[word] * before[word] / self.count[word] for word in after if word in before}
            if scores:
                return max(scores, key=lambda word: scores[word])
        return (after or before or self.count).most_common(1)[0][0]


# --- labels -----------------------------------------------------------------------------------------------------------
def tuned(base: MaskedLanguageModel, train: Reviews, test: Reviews) -> list[Result]:
    """Errors on the test sentences after 500 labels: fine-tuned, from random weights, and by naive Bayes."""
    new = [base.vocabulary_.encode(text) for text in test.texts]
    errors: dict[str, list[float]] = {"tuned": [], "scratch": [], "bayes": []}
    slowest = 0.0
    for seed in range(SEEDS):
        chosen = np.random.default_rng(seed).choice(len(train.texts), LABELS, replace=False)
        rows = [base.vocabulary_.encode(train.texts[number]) for number in chosen]
        for name, inference in (("tuned", FineTune(base, SUPERVISED)), ("scratch", SUPERVISED)):
            start = time.process_time()
            model = classifier(base, inference, seed).fit(rows, train.labels[chosen])
            slowest = max(slowest, time.process_time() - start)
            errors[name].append(1 - model.score(new, test.labels))
        errors["bayes"].append(bayes([train.texts[number] for number in chosen], train.labels[chosen], test))
        print(seed, {name: round(own[-1], 4) for name, own in errors.items()}, flush=True)
    mean = {name: float(np.mean(own)) for name, own in errors.items()}
    results = []
    for name, peer in (("scratch", "the same network from random weights"), ("bayes", "naive Bayes, words and pairs")):
        gain = np.array(errors[name]) - np.array(errors["tuned"])
        error = float(gain.std(ddof=1) / np.sqrt(SEEDS))
        words = (
            f"error after {LABELS} labels, mean of {SEEDS} draws; the gain is {gain.mean():.2%} ± {error:.2%}, and "
            f"{(gain > 0).sum()} of {SEEDS} gain; a fit takes {slowest:.0f} s of CPU at most"
        )
        sure = name == "bayes" or bool(gain.mean() > 2 * error)
        target = None if name == "bayes" else 1.0
        results.append(Result("fine-tuning, SST-2", peer, mean["tuned"], mean[name], words, sure, target, "error"))
    return results


def classifier(base: MaskedLanguageModel, inference: Inference, seed: int) -> Classifier:
    network = NETWORK.replace(tokens=base.vocabulary_.size, output="mean", dropout=0.3)
    return Classifier(network=network, inference=inference, random_state=seed)


def bayes(texts: list[str], labels: np.ndarray, test: Reviews) -> float:
    """The error of naive Bayes over which words and pairs a sentence has, of those in the training sentences."""
    parts = sorted({part for text in texts for part in _parts(text)})
    number = {part: place for place, part in enumerate(parts)}

    def present(rows: list[str]) -> np.ndarray:
        table = np.zeros((len(rows), len(parts)))
        for row, text in enumerate(rows):
            table[row, [number[part] for part in _parts(text) if part in number]] = 1.0
        return table

    model = NaiveBayes(Poisson(), smoothing=1.0).fit(present(texts), labels)
    return 1 - float(model.score(present(test.texts), test.labels))


@cache
def _parts(text: str) -> frozenset[str]:
    words = text.split()
    return frozenset([*words, *(f"{one} {two}" for one, two in pairwise(words))])


if __name__ == "__main__":
    show(run())
