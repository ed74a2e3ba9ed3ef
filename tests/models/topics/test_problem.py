"""A problem gives itself to the inference that is asked for."""

from __future__ import annotations

import numpy as np

from likely.models.topics.ascent import ascend, ascend_in_batches
from likely.models.topics.chain import walk
from likely.models.topics.corpus import Corpus
from likely.models.topics.problem import TopicProblem

CORPUS = Corpus.of(np.array([0, 2, 4]), np.array([0, 1, 1, 2], np.int32), np.array([3.0, 1.0, 2.0, 2.0]), 3)
PROBLEM = TopicProblem(CORPUS, 2, np.full(2, 0.5), 0.1, False, 0, False)


def test_each_way_is_that_of_its_file():
    ways = [
        (PROBLEM.ascend(4, 20, 0.0), ascend(PROBLEM, 4, 20, 0.0)),
        (PROBLEM.ascend_in_batches(2, 20, 0.0, 1, 1.0, 0.6), ascend_in_batches(PROBLEM, 2, 20, 0.0, 1, 1.0, 0.6)),
        (PROBLEM.walk(12, 2, 5), walk(PROBLEM, 12, 2, 5)),
    ]
    for (posterior, expected), iterations in zip(ways, (4, 2, 12), strict=True):
        np.testing.assert_allclose(posterior.components, expected.components, rtol=1e-12)
        assert posterior.components.shape == (2, 3)
        assert posterior.iterations == iterations
