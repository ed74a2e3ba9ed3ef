"""Responsibilities by Bayes' rule, however far out a row lies."""

from __future__ import annotations

import torch

from likely.models.mixtures.responsibilities import blocks, split, total


def test_responsibilities_are_those_of_softmax():
    log_prob = 5 * torch.randn(7, 3, 4, dtype=torch.float64)
    weights = torch.rand(3, 4, dtype=torch.float64).softmax(-1)
    joint = log_prob + weights.log()
    share, evidence = split(log_prob.clone(), weights)
    torch.testing.assert_close(share, joint.softmax(-1), rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(evidence, joint.logsumexp(-1), rtol=1e-12, atol=1e-12)


def test_a_row_far_out_has_responsibilities_and_an_impossible_one_none():
    log_prob = torch.tensor([[[-1e6, -1e6 - 1.0]], [[-torch.inf, -torch.inf]], [[0.0, -torch.inf]]]).double()
    share, evidence = split(log_prob, torch.tensor([[0.5, 0.5]], dtype=torch.float64))
    expected = torch.tensor([0.0, -1.0], dtype=torch.float64).softmax(0)
    torch.testing.assert_close(share[0, 0], expected, rtol=1e-9, atol=1e-12)
    assert share[1].tolist() == [[0.0, 0.0]]
    assert share[2].tolist() == [[1.0, 0.0]]
    assert evidence[1].item() == -torch.inf
    assert abs(evidence[2].item() + torch.tensor(2.0).log().item()) < 1e-6


def test_a_component_without_weight_has_no_rows():
    share, _ = split(torch.zeros(2, 1, 2, dtype=torch.float64), torch.tensor([[0.0, 1.0]], dtype=torch.float64))
    assert share.tolist() == [[[0.0, 1.0]], [[0.0, 1.0]]]


def test_blocks_cover_the_rows_once_in_order():
    for width in (1, 40, 10**6):
        parts = list(blocks(slice(3, 9_000), width))
        assert [row for part in parts for row in range(part.start, part.stop)] == list(range(3, 9_000))
        assert all(256 <= part.stop - part.start <= 4096 for part in parts[:-1])


def test_total_is_the_weighted_sum_over_rows():
    value, weight = torch.randn(5, 2, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    torch.testing.assert_close(total(value, weight), (value * weight.unsqueeze(-1)).sum(0))
    torch.testing.assert_close(total(value, None), value.sum(0))
