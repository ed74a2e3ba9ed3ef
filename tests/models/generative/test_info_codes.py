"""Codes: what is drawn is uniform, and a reader's surprise bounds the information from below."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import SpecError
from likely.core.random import drawing
from likely.models.generative.info_codes import Codes

BOTH = Codes((3, 2), numbers=2)


def test_codes_are_uniform(seed):
    """Goodness of fit of each column at a level of 10⁻⁵."""
    with drawing(seed):
        codes = BOTH.drawn(5000, torch.zeros(1, dtype=torch.float64)).numpy()
    for column, classes in enumerate(BOTH.categories):
        assert stats.chisquare(np.bincount(codes[:, column].astype(int), minlength=classes)).pvalue > 1e-5
    for column in (2, 3):
        assert stats.kstest(codes[:, column], stats.uniform(-1, 2).cdf).pvalue > 1e-5


def test_surprise_is_minus_the_log_of_what_the_reader_says():
    answer = torch.tensor([[0.3, -1.0, 0.2, 0.5, 0.1, 0.7, -0.2, 0.4, 1.3]], dtype=torch.float64)
    codes = torch.tensor([[2.0, 0.0, 0.5, -0.25]], dtype=torch.float64)
    assert answer.shape[1] == BOTH.answers
    scales = np.log1p(np.exp([0.4, 1.3])) + 0.01
    expected = answer[0, :3].softmax(0)[2].log() + answer[0, 3:5].softmax(0)[0].log()
    expected = float(expected) + stats.norm([0.7, -0.2], scales).logpdf([0.5, -0.25]).sum()
    assert BOTH.surprise(answer, codes).item() == pytest.approx(-expected)
    read = BOTH.read(answer)
    assert read.shape == (1, BOTH.width)
    torch.testing.assert_close(read[0, 5:], answer[0, 5:7])


def test_the_bound_is_tight_for_a_reader_that_knows_0_for_one_that_guesses():
    codes = torch.tensor([[0.0], [1.0], [2.0]])
    three = Codes((3,))
    knows, guesses = 50.0 * three.encode(codes), torch.zeros(3, 3)
    assert three.entropy - three.surprise(knows, codes).mean().item() == pytest.approx(math.log(3), rel=1e-6)
    assert three.entropy - three.surprise(guesses, codes).mean().item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Codes((1,)), "categories must be a tuple of integers, each 2 or more"),
        (lambda: Codes(()), "categories must be one or more, where numbers is 0"),
        (lambda: Codes(numbers=-1), "numbers must be an integer, 0 or more"),
        (lambda: Codes(weight=0.0), "weight must be a number above 0"),
    ],
)
def test_codes_that_mean_nothing_are_refused(make, message):
    with pytest.raises(SpecError, match=message):
        make()
