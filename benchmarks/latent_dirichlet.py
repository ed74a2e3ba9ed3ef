"""Latent Dirichlet allocation with 50 topics on the AP corpus, against scikit-learn, gensim and tomotopy.

All topics are judged by one function: half of the words of held-out documents predict the other half.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tomotopy
from gensim.models import LdaModel
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

from likely import LatentDirichlet
from likely.inference import CollapsedGibbs, VariationalBayes

from .datasets import FOLDER
from .timing import Result, compare, interleave, show

__all__ = ["run"]

TOPICS, ITERATIONS, PASSES, SWEEPS = 50, 10, 5, 100
PRIOR = 1 / TOPICS


class Documents(NamedTuple):
    """Documents to learn from, and held-out ones in two halves: (n, V) counts."""

    train: sparse.csr_array
    seen: sparse.csr_array
    scored: sparse.csr_array
    source: str


def run(repeats: int = 3) -> list[Result]:
    data = documents()
    train = data.train
    bags = [list(zip(*row, strict=True)) for row in _rows(train)]
    texts = [np.repeat(words, counts).astype(str).tolist() for words, counts in _rows(train)]
    names = {word: str(word) for word in range(train.shape[1])}

    def likely_fit(inference: CollapsedGibbs | VariationalBayes) -> Callable[[], np.ndarray]:
        def fit() -> np.ndarray:
            return LatentDirichlet(TOPICS, inference, random_state=0).fit(train).topic_word_

        return fit

    def sklearn_fit() -> np.ndarray:
        return LatentDirichletAllocation(TOPICS, max_iter=ITERATIONS, random_state=0).fit(train).components_

    def gensim_fit() -> np.ndarray:
        return LdaModel(bags, num_topics=TOPICS, id2word=names, passes=PASSES, random_state=0).get_topics()

    def tomotopy_fit(workers: int) -> Callable[[], np.ndarray]:
        ready = [_tomotopy(texts) for _ in range(repeats + 1)]  # reading the documents is not timed

        def fit() -> np.ndarray:
            model = ready.pop()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # that two workers are not reproducible
                model.train(SWEEPS, workers=workers)
            topic_word = np.full((TOPICS, train.shape[1]), 1e-12)
            topic_word[:, np.array(model.used_vocabs, dtype=int)] = [
                model.get_topic_word_dist(k) for k in range(TOPICS)
            ]
            return topic_word

        return fit

    def quality(mine: np.ndarray, other: np.ndarray) -> tuple[str, bool]:
        ours, theirs = (completion(topics, data) for topics in (mine, other))
        return f"{data.source}: held-out perplexity {ours:.0f} against {theirs:.0f}", ours <= 1.01 * theirs

    variational = {
        "likely": likely_fit(VariationalBayes(ITERATIONS, tol=0.0)),
        f"scikit-learn batch, {ITERATIONS} iterations": sklearn_fit,
        f"gensim, {PASSES} passes": gensim_fit,
    }
    gibbs = {
        "likely": likely_fit(CollapsedGibbs(SWEEPS, SWEEPS // 2)),
        f"tomotopy, {SWEEPS} sweeps": tomotopy_fit(1),
        f"tomotopy, {SWEEPS} sweeps, 2 workers": tomotopy_fit(2),
    }
    _, sklearn_name, gensim_name = variational
    _, *tomotopy_names = gibbs
    targets = {sklearn_name: 1 / 3, gensim_name: 1.0}
    results = compare("latent_dirichlet variational", interleave(variational, repeats), quality, targets)
    return results + compare(
        "latent_dirichlet gibbs", interleave(gibbs, repeats), quality, dict.fromkeys(tomotopy_names, 2.0)
    )


def documents(held_out: int = 224) -> Documents:
    """The AP corpus without its last tenth in a random order; without the file, made documents of 50 topics."""
    path, rng = FOLDER / "ap_news.npz", np.random.default_rng(7)
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            parts = (file["counts"].astype(np.int64), file["indices"], file["indptr"])
            table, source = sparse.csr_array(parts, shape=tuple(file["shape"])), "AP"
    else:
        topics = rng.dirichlet(np.full(10_000, 0.02), TOPICS)
        mixed = rng.dirichlet(np.full(TOPICS, 0.05), 2200) @ topics
        table = sparse.csr_array(np.array([rng.multinomial(190, row) for row in mixed]))
        source = "MADE DATA (no ap_news.npz)"
    table = table[rng.permutation(table.shape[0])]
    test = table[:held_out]
    seen = test.copy()
    seen.data = rng.binomial(test.data, 0.5)
    return Documents(table[held_out:], seen, sparse.csr_array(test - seen), source)


def completion(topics: np.ndarray, data: Documents, steps: int = 50) -> float:
    """Perplexity of the scored halves given the seen ones: θ_k ∝ α + Σ_v n_v p(k | v), iterated."""
    phi = topics / topics.sum(1, keepdims=True)
    total = 0.0
    for (words, counts), (hidden, times) in zip(_rows(data.seen), _rows(data.scored), strict=True):
        theta = np.full(TOPICS, 1 / TOPICS)
        for _ in range(steps):
            share = theta[:, None] * phi[:, words]
            theta = PRIOR + (share / share.sum(0)) @ counts
            theta /= theta.sum()
        total += times @ np.log(theta @ phi[:, hidden])
    return float(np.exp(-total / data.scored.sum()))


def _rows(table: sparse.csr_array) -> list[tuple[np.ndarray, np.ndarray]]:
    """The words of each document and how often they occur."""
    ends = zip(table.indptr[:-1], table.indptr[1:], strict=True)
    return [(table.indices[start:stop], table.data[start:stop]) for start, stop in ends]


def _tomotopy(texts: list[list[str]]) -> tomotopy.LDAModel:
    model = tomotopy.LDAModel(k=TOPICS, alpha=PRIOR, eta=PRIOR, seed=1)
    model.optim_interval = 0  # α as given, as on our side
    for text in texts:
        model.add_doc(text)
    model.train(0, workers=1)
    return model


if __name__ == "__main__":
    show(run())
