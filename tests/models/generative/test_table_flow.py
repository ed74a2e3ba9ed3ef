"""A flow of tables: log p of the labels plus log p of the numbers given them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Flow
from likely.inference import MAP
from likely.models.generative.table_flow import TableFlow
from likely.networks import MLP, Linear

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 120)
ROWS = np.column_stack([RNG.normal(size=120) + 3.0 * LABELS, LABELS, RNG.normal(size=120)])


@pytest.fixture(scope="module")
def fitted():
    model = Flow("affine", layers=2, network=MLP((8,)), inference=MAP(epochs=20), random_state=0)
    return model.fit({"height": ROWS[:, 0], "kind": np.where(LABELS, "b", "a"), "width": ROWS[:, 2]})


def test_the_parts_add_up(fitted):
    with fitted.posterior_.lent() as module, torch.no_grad():
        assert isinstance(module, TableFlow)
        assert (module.labels, module.numbers) == ((1,), (0, 2))
        x = torch.from_numpy(ROWS[:5]).float()
        labels, numbers = x[:, [1]], x[:, [0, 2]]
        told = module.told(labels)
        expected = module.chain.log_prob(labels) + module.flow.log_prob(numbers, told)
        torch.testing.assert_close(module.log_prob(x), expected)


def test_draws_have_the_frequencies_of_the_labels_and_keep_their_columns(fitted):
    rows = fitted.sample(2_000, random_state=0)
    kinds = np.asarray(rows["kind"])
    frequency = np.mean(kinds == "b")
    assert abs(frequency - LABELS.mean()) < 6 * np.sqrt(0.25 / 2_000) + 0.05  # what 20 epochs leave
    assert list(rows.columns) == ["height", "kind", "width"]


@pytest.mark.parametrize("network", [MLP((8,), norm="layer"), MLP((8,), residual="preactivation"), Linear()])
def test_labels_have_their_own_network_where_the_flow_s_has_no_masked_form(network):
    model = Flow("affine", layers=1, network=network, inference=MAP(epochs=1), random_state=0).fit(ROWS)
    assert np.isfinite(model.log_prob(ROWS)).all()
