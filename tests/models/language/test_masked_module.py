"""log p of hidden tokens by the module, written out from the plain network; networks that see one side are refused."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn.functional import logsigmoid

from likely.core.errors import SpecError
from likely.models.language.masked_module import MaskedModule, two_sided_network
from likely.models.language.windows import ABSENT
from likely.networks import GRU, LRU, LSTM, MLP, RNN, Transformer

TOKENS, MASK = 4, 4
NETWORKS = [Transformer(8, 2, 1), GRU(3), LSTM(3), RNN(3)]


@pytest.fixture(params=NETWORKS, ids=lambda network: type(network).__name__)
def module(request):
    return MaskedModule(request.param, TOKENS, context=6).eval()


def plain(module, x):
    """log softmax of the network for one row without padding."""
    return module.network(x[None])[0, :, :TOKENS].log_softmax(-1)


@torch.no_grad()
def test_each_token_counts_the_length_over_how_many_are_hidden(module):
    rows = [torch.tensor([0, MASK, 2, MASK, 1]), torch.tensor([MASK, 3, 3])]
    x = torch.full((2, 5), ABSENT)
    for row, tokens in zip(x, rows, strict=True):
        row[: len(tokens)] = tokens
    asked = torch.tensor([[[1, 3], [3, 0]], [[0, 0], [2, ABSENT]]])
    first, second = plain(module, rows[0]), plain(module, rows[1])
    expected = torch.tensor([[5 / 2 * first[1, 3], 5 / 2 * first[3, 0]], [3 * second[0, 2], 0.0]])
    torch.testing.assert_close(module(x, asked), expected, rtol=1e-5, atol=1e-6)
    nothing = torch.full((2, 2, 2), ABSENT)
    nothing[:, 0] = 0
    assert not module(x, nothing).any()


@torch.no_grad()
def test_rows_average_over_hidden_tokens_to_the_mean_of_sums(module):
    """The mean over the subsets of m of t tokens is the mean over subsets of t times the mean log p inside."""
    tokens = torch.tensor([2, 0, 1, 3])
    drawn, wanted = [], []
    for places in map(list, itertools.combinations(range(4), 2)):
        hidden = tokens.clone()
        hidden[places] = MASK
        drawn.append(module(hidden[None], torch.tensor([[places, tokens[places].tolist()]])).sum())
        wanted.append(4 * plain(module, hidden)[places, tokens[places]].mean())
    torch.testing.assert_close(torch.stack(drawn).mean(), torch.stack(wanted).mean(), rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_one_place_and_sums_are_those_of_the_network(module):
    x = torch.tensor([[1, MASK, 2], [MASK, 0, ABSENT]])
    answers = module.at(x, torch.tensor([1, 0]))
    torch.testing.assert_close(answers[0], plain(module, x[0])[1], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(answers[1], plain(module, x[1, :2])[0], rtol=1e-5, atol=1e-6)
    sums = torch.stack([module.network.hidden(row[row >= 0][None])[0].sum(0) for row in x])
    torch.testing.assert_close(module.total(x), sums, rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_pairs_are_told_by_the_logit_at_the_boundary():
    module = MaskedModule(GRU(3), TOKENS, context=6, pairs=True).eval()
    x, boundary = torch.tensor([[0, MASK, 5, 2], [1, 2, 5, MASK]]), 2
    logit = module.network(x)[:, boundary, -1]
    torch.testing.assert_close(module.follows(x, torch.tensor([boundary] * 2)), logit, rtol=1e-5, atol=1e-6)
    asked = torch.tensor([[[1, boundary], [3, 1]], [[3, boundary], [0, 0]]])
    out = module(x, asked)
    torch.testing.assert_close(out[:, -1], torch.stack([logsigmoid(logit[0]), logsigmoid(-logit[1])]))
    words = torch.stack([plain(module, x[0])[1, 3], plain(module, x[1])[3, 0]])
    torch.testing.assert_close(out[:, 0], 3 * words, rtol=1e-5, atol=1e-6)  # three tokens beside the boundary
    asked[:, 1, -1] = ABSENT
    assert not module(x, asked)[:, -1].any()


def test_networks_are_made_to_see_both_sides():
    assert two_sided_network(LSTM(8, output="last"), 30, 64) == LSTM(8, bidirectional=True, output="each", tokens=30)
    made = two_sided_network(Transformer(8, 2, 1), 30, 64)
    assert (made.longest, made.output, made.causal) == (64, "each", False)
    for network in (LRU(4), MLP((4,))):
        with pytest.raises(SpecError, match="needs a network that sees tokens on both sides: Transformer, RNN, GRU"):
            two_sided_network(network, 30, 64)
    with pytest.raises(SpecError, match="does not look ahead; a masked language model needs causal=False"):
        two_sided_network(Transformer(causal=True), 30, 64)
