"""Grey pixels under a Bernoulli likelihood: probabilities, from which labels are drawn in each batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import VAE, Autoregressive
from likely.core.errors import DataError
from likely.data.augment import Binarise, Flip
from likely.inference import MAP, Ensemble
from likely.likelihoods import Bernoulli, Normal
from likely.models.generative.grey import drawn_anew
from likely.networks import MLP
from likely.optim import Adam

GREY = np.tile([0.1, 0.5, 0.9, 0.0, 1.0], (400, 1))


def test_the_default_draws_pixels_with_their_probabilities(seed):
    """Means of 4,000 new rows: 0.1 is above 4 of their standard errors with 4 of those of 400 rows (1 in 10,000).

    160 steps are enough to forget the start; after 40, one of 50 fits was still 0.2 off.
    """
    model = VAE(Bernoulli(), 1, MLP((4,)), MLP((4,)), random_state=seed)
    model._automatic = lambda rows: MAP(Adam(0.01), epochs=40, batch_size=100, validation=0.1)
    new = model.fit(GREY).sample(4_000, random_state=seed)
    assert set(np.unique(new)) == {0.0, 1.0}
    assert np.abs(new.mean(0) - GREY[0]).max() < 0.15
    assert np.isfinite(model.history_["validation"]).all()


def test_only_an_automatic_inference_is_changed():
    grey, black = torch.tensor([[0.2, 1.0]]), torch.tensor([[0.0, 1.0]])
    assert drawn_anew(MAP(), Bernoulli(), grey, chosen=False) == MAP(augment=Binarise())
    assert drawn_anew(MAP(), "bernoulli", grey, chosen=False).augment == Binarise()
    for same in (
        drawn_anew(MAP(), Bernoulli(), black, chosen=False),
        drawn_anew(MAP(), Bernoulli(), 2 * grey, chosen=False),
        drawn_anew(MAP(), Bernoulli(), grey * torch.nan, chosen=False),
        drawn_anew(MAP(), Normal(), grey, chosen=False),
        drawn_anew(MAP(), "auto", grey, chosen=False),
    ):
        assert same == MAP()
    inner = Ensemble(2, by=MAP(augment=Flip()))
    assert drawn_anew(inner, Bernoulli(), grey, chosen=True) is inner


@pytest.mark.parametrize("model", [VAE(Bernoulli(), inference=MAP()), Autoregressive(Bernoulli(), inference=MAP())])
def test_a_chosen_inference_that_draws_nothing_is_refused(model):
    with pytest.raises(DataError, match=r"between 0 and 1 \(0\.1 at row 0\).*MAP\(augment=Binarise\(\)\)"):
        model.fit(GREY)
