"""A chain of collapsed Gibbs sweeps over a corpus, and the topics on the average of its states."""

from __future__ import annotations

import numpy as np

from ...core import distributed
from ...core.errors import DataError
from ...core.interrupt import blocks, interruptible
from ...core.progress import progress
from .gibbs import log_joint, prior_of_counts, sweep
from .lanes import padded
from .problem import TopicPosterior, TopicProblem

__all__ = ["Chain", "walk"]

BLOCK = 1 << 28
"""Weights of topics that are formed in one call: part of a second."""
LOG_GAMMA = 100
"""Multiply-adds that a logarithm of Γ, or its derivative, takes the time of."""


class Chain:
    """The topic of every token, and the counts that follow from it.

    >>> from likely.models.topics.corpus import Corpus
    >>> corpus = Corpus.of(np.array([0, 2]), np.array([0, 1], dtype=np.int32), np.array([2.0, 1.0]), 2)
    >>> chain = Chain(TopicProblem(corpus, 3, np.full(3, 0.1), 0.1, False, 0, False))
    >>> chain.sweep()
    >>> int(chain.word_topic.sum()), chain.topics.shape
    (3, (3,))
    """

    def __init__(self, problem: TopicProblem) -> None:
        self.size, self.smooth = problem.topics, float(problem.topic_prior)
        self.starts, self.words = problem.corpus.tokens()
        self.topics = np.full(len(self.words), -1, np.int32)
        self.prior = padded(problem.document_prior, 0.0)
        self.word_topic = np.zeros((problem.corpus.size, len(self.prior)), np.int32)
        self.topic = np.zeros(len(self.prior), np.int64)
        self.state = np.random.SeedSequence(distributed.agreed(problem.seed)).generate_state(1, np.uint64)

    def sweep(self) -> None:
        """Draw every topic once; the first time, one token after another from an empty start."""
        counts = (self.topics, self.word_topic, self.topic)
        for first, last in blocks(np.diff(self.starts), BLOCK / len(self.prior)):
            starts = self.starts[first : last + 1]
            sweep(starts, self.words, *counts, self.prior, self.smooth, self.size, self.state)

    def log_joint(self) -> float:
        """log p(w, z | α, β)."""
        counts = (self.topics, self.word_topic, self.topic)
        arguments = (self.starts, *counts, self.prior, self.smooth, self.size)
        return float(interruptible(self._work + LOG_GAMMA * self.word_topic.size, log_joint, *arguments))

    def learn_prior(self, steps: int = 5) -> None:
        """Move α towards what the topics of the documents say."""
        arguments = (self.starts, self.topics, self.prior, self.size, steps)
        self.prior = interruptible(steps * self._work, prior_of_counts, *arguments)

    @property
    def _work(self) -> float:
        """Of one look at the topics of all documents."""
        return LOG_GAMMA * min((len(self.starts) - 1) * self.size, len(self.words)) + len(self.words)


def walk(problem: TopicProblem, sweeps: int, warmup: int, thin: int) -> TopicPosterior:
    """`sweeps` sweeps; of those after `warmup`, every `thin`-th counts. α is learned in the warmup only, so that
    the states that count are draws from one distribution. A document of weight w is there w times."""
    if problem.weight is not None:
        if (problem.weight != np.round(problem.weight)).any():
            raise DataError("sample_weight has fractions; CollapsedGibbs repeats documents: use VariationalBayes().")
        places = np.repeat(np.arange(problem.corpus.documents), problem.weight.astype(np.int64))
        problem = problem._replace(corpus=problem.corpus.take(places), weight=None)
    chain = Chain(problem)
    total = np.zeros(chain.word_topic.shape)
    kept, trace = 0, []
    with progress("LatentDirichlet", sweeps, show=problem.verbose) as report:
        for done in range(1, sweeps + 1):
            chain.sweep()
            if problem.learn_prior and done <= warmup and done % 10 == 0:
                chain.learn_prior()
            if done > warmup and (sweeps - done) % thin == 0:
                total += chain.word_topic
                kept += 1
            if done % 10 == 0 or done == sweeps:
                trace.append(chain.log_joint())
                report(done, log_joint=trace[-1])
    components = np.ascontiguousarray((chain.smooth + total / kept).T[: chain.size])
    return TopicPosterior(components, chain.prior[: chain.size].copy(), trace, None, sweeps)
