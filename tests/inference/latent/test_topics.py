"""What the two inferences of topics ask of a problem, and how documents read the topics they leave."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

from likely.core.errors import SpecError
from likely.inference import CollapsedGibbs, VariationalBayes

COMPONENTS = np.array([[3.0, 1.0, 6.0], [0.5, 0.5, 1.0]])


class Problem:
    """Writes down what it is asked to do."""

    def __getattr__(self, name):
        return lambda *arguments: (name, arguments)


def test_all_documents_at_once_or_in_batches_or_a_walk():
    assert VariationalBayes(max_iter=7, tol=0.1).fit(Problem()) == ("ascend", (7, 10, 0.1))
    batches = VariationalBayes(max_iter=7, tol=0.1, batch_size=32, learning_offset=2.0, learning_decay=0.6)
    assert batches.fit(Problem()) == ("ascend_in_batches", (7, 100, 0.1, 32, 2.0, 0.6))
    assert VariationalBayes(passes=3).fit(Problem())[1][1] == 3
    assert CollapsedGibbs(sweeps=20, warmup=5, thin=2).fit(Problem()) == ("walk", (20, 5, 2))


def test_weights_are_the_geometric_mean_or_the_mean_of_a_dirichlet():
    """exp E[log φ] = exp(ψ(λ) − ψ(Σλ)) is below the mean by Jensen's inequality; the mean sums to 1."""
    geometric, mean = VariationalBayes().weights(COMPONENTS), CollapsedGibbs().weights(COMPONENTS)
    np.testing.assert_allclose(np.log(geometric), digamma(COMPONENTS) - digamma([[10.0], [2.0]]), rtol=1e-12)
    np.testing.assert_allclose(mean, COMPONENTS / [[10.0], [2.0]], rtol=1e-12)
    assert (geometric < mean).all()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: VariationalBayes(learning_decay=0.5), "learning_decay must be above 0.5 and at most 1"),
        (lambda: VariationalBayes(tol=-1.0), "tol must be 0 or a positive number"),
        (lambda: VariationalBayes(batch_size=0), "batch_size must be"),
        (lambda: CollapsedGibbs(sweeps=10, warmup=10), "warmup must be from 0 to below sweeps=10"),
        (lambda: CollapsedGibbs(thin=0), "thin must be"),
    ],
)
def test_values_that_will_not_do_are_refused(make, text):
    with pytest.raises(SpecError, match=text):
        make()
