from __future__ import annotations

import pytest
import torch

from likely.likelihoods.choices import arrange, columns, free, learned, logarithms


@pytest.mark.parametrize("first", ["learned", "input", 2.0])
@pytest.mark.parametrize("second", ["learned", "input", 3.0])
def test_arrange_and_logarithms_are_inverse(first, second):
    values = [torch.tensor(0.5), torch.tensor(0.7)]
    eta = arrange([torch.tensor(9.0)], values, first, second)
    assert eta[0] == 9.0
    assert len(eta) == 1 + free(first, second)
    for choice, value, logarithm in zip((first, second), values, logarithms(eta, 1, first, second), strict=True):
        expected = value if isinstance(choice, str) else torch.tensor(choice).log()
        torch.testing.assert_close(logarithm, expected)


@pytest.mark.parametrize(
    "choices", [("learned", "input"), ("input", "learned"), ("learned", "learned"), ("input", 1.0)]
)
def test_learned_constants_stand_last(choices):
    where = columns(1, *choices)
    last = 1 + free(*choices) - learned(*choices)
    for choice, column in zip(choices, where, strict=True):
        if isinstance(choice, str):
            assert (column >= last) == (choice == "learned")
