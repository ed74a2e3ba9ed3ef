"""Sequences step by step: `start` and `step` give what the whole pass gives."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.networks import GRU, LRU, LSTM, RNN, ConvNet, Transformer

STEPS, ROWS = 7, 3
CAUSAL = {"width": 8, "heads": 2, "layers": 2, "causal": True, "output": "each"}
NETWORKS = {
    "rnn": RNN(4, output="each"),
    "relu rnn": RNN(4, layers=2, output="each", activation="relu"),
    "gru": GRU(4, layers=3, output="each"),
    "lstm": LSTM(4, layers=2, output="each", dropout=0.3),
    "lru": LRU(6, 4, layers=3, output="each"),
    "transformer": Transformer(**CAUSAL, dropout=0.2),
    "post norm": Transformer(**CAUSAL, norm="post"),
    "sinusoidal": Transformer(**CAUSAL, positions="sinusoidal", join="concatenate"),
    "relative": Transformer(**CAUSAL, positions="relative"),
    "a set": Transformer(**CAUSAL, positions=None),
    "no bias": Transformer(**CAUSAL, bias=False),
    "linear": Transformer(**CAUSAL, attention="linear"),
    "additive": Transformer(**CAUSAL, score="additive", positions="relative"),
    "general": Transformer(**CAUSAL, score="general"),
}


def stepwise(module, x):
    """η after each step: (n, t, out)."""
    state, answers = module.start(len(x)), []
    for step in x.unbind(1):
        eta, state = module.step(step, state)
        answers.append(eta)
    return torch.stack(answers, 1)


@torch.no_grad()
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("inputs", ["features", "numbers", "tokens"])
def test_steps_are_the_whole_pass(name, inputs):
    torch.manual_seed(0)
    network = NETWORKS[name].replace(tokens=5 if inputs == "tokens" else None)
    shape = (STEPS, 2) if inputs == "features" else (STEPS,)
    module = network.build(shape, 3).eval()
    x = torch.randint(5, (ROWS, STEPS)) if inputs == "tokens" else torch.randn(ROWS, *shape)
    torch.testing.assert_close(stepwise(module, x), module(x), rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["gru", "lru", "relative"])
def test_the_last_step_answers_for_the_sequence_so_far(name):
    torch.manual_seed(0)
    module = NETWORKS[name].replace(output="last").build((STEPS, 2), 1).eval()
    x = torch.randn(ROWS, STEPS, 2)
    answers = stepwise(module, x)
    for length in (1, 4, STEPS):
        torch.testing.assert_close(answers[:, length - 1], module(x[:, :length]), rtol=1e-5, atol=1e-5)


def test_gradients_go_through_the_steps():
    torch.manual_seed(0)
    module, x = LSTM(4, output="each").build((STEPS, 2), 1), torch.randn(ROWS, STEPS, 2)
    slow = torch.autograd.grad(stepwise(module, x).square().sum(), list(module.parameters()))
    fast = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
    for one, other in zip(slow, fast, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (GRU(4, bidirectional=True, output="each"), "step needs bidirectional=False"),
        (Transformer(8, 2, 1, output="each"), "step needs causal=True"),
        (GRU(4, output="mean"), 'it needs output="last" or "each"; found "mean"'),
        (LRU(6, 4, output="mean"), 'it needs output="last" or "each"; found "mean"'),
        (Transformer(8, 2, 1, causal=True), 'it needs output="last" or "each"; found "class"'),
    ],
)
def test_networks_that_need_all_steps_say_so(network, message):
    with pytest.raises(SpecError, match=message):
        network.build((STEPS, 2), 1).start(ROWS)


def test_other_networks_have_no_steps():
    assert not hasattr(ConvNet((2,)).build((1, 6, 6), 1), "step")


def test_more_steps_than_positions_were_learned_for_are_refused():
    module = Transformer(**CAUSAL, longest=2).build((STEPS, 2), 1).eval()
    with pytest.raises(ValueError, match="positions were learned for 2"):
        stepwise(module, torch.randn(ROWS, 3, 2))
