"""Skip-gram word vectors against gensim with one worker: the same text, width, window, noise and epochs.

Quality: 300 words are split into twins, each occurrence at random; the twin should be the nearest word. What is
compared is the mean of 1 / its rank over all 600, and over fits, each from another seed. The text is tiny Shakespeare,
the English side of Multi30k and SST-2.
"""

from __future__ import annotations

import gzip
import re
import time
from collections import Counter

import numpy as np

from likely import WordVectors

from .datasets import FOLDER
from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

WIDTH, WINDOW, NEGATIVE, EPOCHS, LEAST = 100, 5, 5, 5, 5
TWINS, OFTEN = 300, 40


def sentences() -> list[list[str]]:
    """The words of each line, in lower case."""
    lines = (FOLDER / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines()
    for name, column in (("multi30k_en_de.tsv.gz", 1), ("sst2.tsv.gz", 2)):
        with gzip.open(FOLDER / name, "rt", encoding="utf-8") as file:
            lines += [line.rstrip("\n").split("\t")[column] for line in file]
    words = [re.findall(r"[a-z']+", line.lower()) for line in lines]
    return [row for row in words if row]


def twinned(rows: list[list[str]], seed: int) -> tuple[list[list[str]], list[str]]:
    """The text in which each occurrence of some frequent words is one of two, and those words."""
    rng = np.random.default_rng(seed)
    counts = Counter(word for row in rows for word in row)
    often = sorted(word for word, count in counts.items() if count >= OFTEN)
    chosen = [str(word) for word in rng.choice(often, TWINS, replace=False)]
    split = set(chosen)
    return [[f"{w}_{rng.integers(2)}" if w in split else w for w in row] for row in rows], chosen


def reciprocal_rank(vocabulary: list[str], vectors: np.ndarray, chosen: list[str]) -> float:
    """The mean of 1 / rank of the twin among all other words, by cosine."""
    place = {word: number for number, word in enumerate(vocabulary)}
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ranks = []
    for word in chosen:
        for own, other in ((place[f"{word}_0"], place[f"{word}_1"]), (place[f"{word}_1"], place[f"{word}_0"])):
            cosine = unit @ unit[own]
            ranks.append(max(1, int((cosine > cosine[other]).sum())))  # the word itself is nearer, so 1 is the first
    return float(np.mean([1 / rank for rank in ranks]))


def run(repeats: int = 3) -> list[Result]:
    from gensim.models import Word2Vec

    rows, chosen = twinned(sentences(), 0)
    total = sum(map(len, rows))

    ranks: dict[str, list[float]] = {"likely": [], "gensim": []}

    def likely_fit() -> list[float]:
        seed = len(ranks["likely"])
        model = WordVectors(WIDTH, WINDOW, NEGATIVE, epochs=EPOCHS, min_count=LEAST, random_state=seed).fit(rows)
        ranks["likely"].append(reciprocal_rank(model.vocabulary_, model.vectors_, chosen))
        return ranks["likely"]

    def gensim_fit() -> list[float]:
        model = Word2Vec(
            rows,
            vector_size=WIDTH,
            window=WINDOW,
            negative=NEGATIVE,
            sg=1,
            epochs=EPOCHS,
            min_count=LEAST,
            workers=1,
            seed=len(ranks["gensim"]),
        )
        ranks["gensim"].append(reciprocal_rank(model.wv.index_to_key, model.wv.vectors, chosen))
        return ranks["gensim"]

    def quality(mine: list[float], theirs: list[float]) -> tuple[str, bool]:
        gap = float(np.mean(mine) - np.mean(theirs))
        error = float(np.sqrt(sum(np.var(own, ddof=1) / len(own) for own in (mine, theirs))))
        words = (
            f"mean reciprocal rank of {2 * TWINS} twins {np.mean(mine):.3f}, gensim {np.mean(theirs):.3f}, standard "
            f"error of the difference {error:.3f}, {len(mine)} fits each; {total:,} words, d = {WIDTH}"
        )
        return words, gap > -max(0.01, 2 * error)

    calls = {"likely": likely_fit, "gensim": gensim_fit}

    def measured() -> list[Result]:
        timed = interleave(calls, repeats, clock=time.process_time)
        return compare("word_vectors", timed, quality, {"gensim": 1 / 1.6})

    return with_threads(1, measured)


if __name__ == "__main__":
    show(run())
