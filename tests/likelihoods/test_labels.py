"""What likelihoods of labels share: how many classes there are, and their weighted frequencies."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.likelihoods import Categorical, Ordinal
from likely.likelihoods.labels import count_classes, frequencies

Y = torch.tensor([0.0, 2.0, 2.0, 1.0], dtype=torch.float64)


def test_classes_are_counted_from_the_largest_label():
    assert count_classes(Y, None) == 3
    assert count_classes(Y, 5) == 5
    assert count_classes(torch.zeros(3), None) == 2
    assert count_classes(torch.tensor([math.nan, 1.0]), None) == 2
    assert count_classes(torch.empty(0), None) == 2


def test_frequencies_are_weighted_and_never_zero():
    share = torch.tensor([[0.1, 0.25], [0.2, 0.25], [0.3, 0.25], [0.4, 0.25]], dtype=torch.float64)
    estimate = frequencies(Y, share, 4)
    expected = torch.tensor([[0.1, 0.4, 0.5, 0.0], [0.25, 0.25, 0.5, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(estimate, expected, rtol=1e-6, atol=1e-6)
    assert bool((estimate > 0).all())
    torch.testing.assert_close(estimate.sum(1), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_the_estimate_has_the_frequencies_as_its_probabilities(kind):
    share = torch.full((4, 1), 0.25, dtype=torch.float64)
    eta = kind().estimate(Y, share)
    expected = torch.tensor([[0.25, 0.25, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(kind().label_log_probs(eta).exp(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_statistics_are_indicators_where_the_classes_are_known(kind):
    known = kind(classes=3)
    one_hot = known.statistics(Y, torch.zeros(()))
    assert one_hot.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]
    eta = known.from_statistics(one_hot.mean(0, keepdim=True), torch.zeros(()))
    torch.testing.assert_close(known.label_log_probs(eta).exp()[0], one_hot.mean(0), rtol=1e-6, atol=1e-9)
    assert kind().statistics(Y, torch.zeros(())) is None
    assert known.size(known.target(Y)) == 3


@pytest.mark.parametrize("classes", [1, 0, 2.0, True])
def test_classes_are_two_or_more(classes):
    with pytest.raises(SpecError, match="classes must be"):
        Categorical(classes=classes)
