from __future__ import annotations

import pytest
import torch

from likely import MaskedLanguageModel
from likely.inference import MAP
from likely.networks import Transformer

TEXTS = ["to be or not to be", "that is the question", "be that as it may", "not to question it", "so be it"]
QUICK = MAP("adam(0.01)", epochs=2, batch_size=4)


@pytest.fixture(scope="session")
def masked():
    """A masked language model of a few lines, that reads eight words at a time."""
    return MaskedLanguageModel(Transformer(8, 2, 1), context=8, inference=QUICK, random_state=0).fit(TEXTS)


def log_probs(model, tokens, place, member=0):
    """log p at one place by the plain network, called on the whole text with a mask there."""
    x = torch.tensor(tokens)
    x[place] = model.vocabulary_.size
    return model.posterior_.module_of(member).network(x.unsqueeze(0))[0, place, : model.vocabulary_.size].log_softmax(0)
