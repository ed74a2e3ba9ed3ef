from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import ModelFileError
from likely.data.text import Bag
from likely.models.evidence import Evidence

TEXTS = ["good fun", "good film", "bad film", "dull bad", "odd film", "odd fun"]
LABELS = torch.tensor([0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_without_a_row_are_those_of_a_model_that_never_saw_it(classes):
    count = 2 * classes
    bag = Bag().fit(TEXTS)
    x, labels, weight = bag.rows(TEXTS)[:count], LABELS[:count], torch.arange(1.0, count + 1)
    held_out = Evidence.of(x, labels, weight, classes, bag.kinds).held_out(x, labels, weight)
    for row in range(count):
        others = torch.tensor([other for other in range(count) if other != row])
        refitted = Evidence.of(x[others], labels[others], weight[others], classes, bag.kinds)
        torch.testing.assert_close(held_out[row], refitted.scores(x[row : row + 1])[0])


def test_it_is_multinomial_naive_bayes():
    from sklearn.naive_bayes import MultinomialNB

    x = Bag().fit(TEXTS).rows(TEXTS)
    present = x.with_features(torch.ones_like(x.values))
    peer = MultinomialNB(fit_prior=False).fit(present.dense().numpy(), LABELS.numpy())
    own = Evidence.of(x, LABELS, torch.ones(6), 3, (x.width,)).log_prob(present).log_softmax(1)
    np.testing.assert_allclose(own.numpy(), peer.predict_log_proba(present.dense().numpy()), atol=1e-10)


@pytest.mark.parametrize(
    "counts", [torch.ones(2, 3), -torch.ones(2, 4).double(), torch.full((2, 4), torch.nan).double()]
)
def test_counts_of_a_file_that_are_none_are_refused(counts):
    with pytest.raises(ModelFileError, match="The file has counts of words that are none of 2 classes × 4 words"):
        Evidence.restored(counts, 2, (3, 1))
