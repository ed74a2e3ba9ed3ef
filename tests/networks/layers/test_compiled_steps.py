"""Steps by a compiled loop are those of the encoder."""

from __future__ import annotations

import pytest
import torch

from likely.decoding.base import taken
from likely.networks import Transformer
from likely.networks.layers.compiled_steps import ROOM, CompiledState

KINDS = {
    "plain": {},
    "post, relu": {"norm": "post", "activation": "relu"},
    "no bias, tied, dot": {"bias": False, "tied": True, "score": "dot"},
    "sinusoidal": {"positions": "sinusoidal"},
    "concatenated": {"join": "concatenate"},
    "a set": {"positions": None},
}
STEPS = ROOM + 3


def network(**options):
    spec = Transformer(8, 2, 2, tokens=5, output="each", causal=True, longest=STEPS, **options)
    built = spec.build((STEPS,), 5).eval()
    with torch.no_grad():
        for value in built.parameters():
            value.add_(0.3 * torch.randn_like(value))
    return built


def stepped(built, tokens, state):
    answers = []
    for column in tokens.T:
        answer, state = built.step(column, state)
        answers.append(answer)
    return torch.stack(answers, 1), state


@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_steps_are_the_pass_over_all(name):
    """Also past the room that there is at first, for rows in fours and for what is left of them."""
    built, tokens = network(**KINDS[name]), torch.randint(5, (5, STEPS))
    answers, state = stepped(built, tokens, built.start(5))
    assert isinstance(state, CompiledState)
    torch.testing.assert_close(answers, built(tokens), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options", [{"positions": "relative"}, {"score": "general"}, {"activation": "tanh"}, {"attention": "linear"}]
)
@torch.no_grad()
def test_what_the_loop_does_not_know_goes_step_by_step(options):
    built = network(**options)
    assert not isinstance(built.start(1), CompiledState)


def test_gradients_are_not_lost():
    built = network()
    answer, state = built.step(torch.tensor([1]), built.start(1))
    assert not isinstance(state, CompiledState)
    assert answer.requires_grad


@torch.no_grad()
def test_dropout_in_training_is_drawn():
    built = network(dropout=0.5)
    assert isinstance(built.start(1), CompiledState)
    assert not isinstance(built.train().start(1), CompiledState)


@torch.no_grad()
def test_a_state_can_be_gone_on_from_more_than_once():
    """Two ways from one state, taken in turns, and rows picked from it, each see their own past alone."""
    built, past = network(), torch.randint(5, (3, 4))
    ways = [torch.randint(5, (3, 6)) for _ in range(2)]
    _, state = stepped(built, past, built.start(3))
    states, answers = [state, state], [[], []]
    for t in range(6):
        for number, way in enumerate(ways):
            answer, states[number] = built.step(way[:, t], states[number])
            answers[number].append(answer)
    for way, answer in zip(ways, answers, strict=True):
        expected = built(torch.cat([past, way], 1))[:, 4:]
        torch.testing.assert_close(torch.stack(answer, 1), expected, rtol=1e-4, atol=1e-4)
    rows = torch.tensor([2, 0])
    answer, _ = stepped(built, ways[0][rows], taken(state, rows))
    torch.testing.assert_close(answer, torch.stack(answers[0], 1)[rows], rtol=1e-4, atol=1e-4)
