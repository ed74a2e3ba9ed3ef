from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.models.language.module import LanguageModule, causal_network
from likely.networks import GRU, LRU, LSTM, MLP, RNN, Transformer

NETWORKS = [Transformer(8, 2, 2), Transformer(8, 2, 1, bias=False, tied=True), RNN(6), GRU(6), LSTM(6), LRU(6, 4, 1)]
TOKENS = torch.tensor([[4, 0, 1, 2, 3, 1, 0], [4, 2, 2, 1, 0, 0, 3]])


@torch.no_grad()
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_log_probabilities_are_a_softmax_of_the_past_alone(network):
    torch.manual_seed(0)
    module = LanguageModule(network, 5, 4, 6).eval()
    whole = module(TOKENS)
    changed = TOKENS.clone()
    changed[:, 4:] = torch.tensor([1, 2, 0])
    torch.testing.assert_close(module(changed)[:, :3], whole[:, :3])
    for length in (1, 4, 6):
        ahead = module.last(TOKENS[:, :length], torch.full((2,), length))
        torch.testing.assert_close(ahead.exp().sum(1), torch.ones(2))
        torch.testing.assert_close(ahead.gather(1, TOKENS[:, length : length + 1])[:, 0], whole[:, length - 1])


@torch.no_grad()
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_steps_are_the_whole_pass(network):
    torch.manual_seed(0)
    module = LanguageModule(network, 5, 4, 6).eval()
    state = module.start(2)
    for place in range(6):
        log_probs, state = module.step(TOKENS[:, place], state)
        expected = module.last(TOKENS[:, : place + 1], torch.full((2,), place + 1))
        torch.testing.assert_close(log_probs, expected, rtol=1e-5, atol=1e-5)


def test_where_there_is_no_token_nothing_is_added_and_nothing_learned():
    module = LanguageModule(GRU(6), 5, 4, 6)
    short = torch.tensor([[4, 1, 2, -1, -1]])
    log_probs = module(short)
    assert log_probs[0, 2:].tolist() == [0.0, 0.0]
    torch.testing.assert_close(log_probs[:, :2], module(short[:, :3]))


def test_networks_that_will_not_do_are_named():
    with pytest.raises(SpecError, match=r"network=MLP\(\): LanguageModel needs NGram, or a network that goes through"):
        causal_network(MLP(), 5, 6)
    with pytest.raises(SpecError, match="looks ahead; a language model needs bidirectional=False"):
        causal_network(LSTM(4, bidirectional=True), 5, 6)
    assert causal_network("transformer(width=8, heads=2)", 5, 6) == Transformer(
        8, 2, causal=True, output="each", tokens=5, longest=6
    )
