"""The emissions of hidden states, from data and from known parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import GaussianMixture
from likely.core.errors import DataError, SpecError
from likely.likelihoods import Categorical, Normal, Poisson
from likely.models.emissions.mixture import MixtureEmission
from likely.models.markov.emission import columns_of_size, emission_of, state_means

ROWS = torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]], dtype=torch.float64)


def test_a_mixture_is_one_emission_and_a_list_has_one_per_column():
    assert isinstance(emission_of(GaussianMixture(n_components=2), ROWS, None, 0.0), MixtureEmission)
    columns = emission_of(["normal", "poisson"], ROWS, None, 0.0)
    assert [type(part.likelihood) for part in columns.parts] == [Normal, Poisson]


def test_as_many_columns_as_the_parameters_take():
    assert columns_of_size(Poisson(), 3, 0.0).parts[-1].columns.stop == 3
    with pytest.raises(DataError, match="eta has 5 numbers for each state"):
        columns_of_size([Poisson(), Poisson()], 5, 0.0)


def test_means_of_states_and_of_labels_none():
    eta = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    np.testing.assert_allclose(state_means(columns_of_size(Poisson(), 1, 0.0), {"eta": eta}), np.exp(eta.numpy()))
    labels = emission_of(Categorical(3), ROWS[:, :1], None, 0.0)
    logits = torch.zeros(2, sum(part.size for part in labels.parts), dtype=torch.float64)
    with pytest.raises(SpecError, match="of labels, which have no mean"):
        state_means(labels, {"eta": logits})
