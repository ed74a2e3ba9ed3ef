from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.decoding import Beam, Greedy
from likely.inference import Posterior
from likely.models.language.module import LanguageModule
from likely.models.language.trained import Trained, window_starts
from likely.networks import GRU, LRU, Transformer

V, CONTEXT = 4, 6
NETWORKS = [Transformer(8, 2, 1), GRU(6), LRU(6, 4, 1)]
RNG = np.random.default_rng(0)
SEQUENCES = [[V, *RNG.integers(V, size=length)] for length in (1, 4, 6, 7, 25)]
VALUES, OFFSETS = np.concatenate(SEQUENCES), np.cumsum([0, *map(len, SEQUENCES)])


def made(network, members=1, context=CONTEXT):
    torch.manual_seed(0)
    modules = [LanguageModule(network, V + 1, V, context) for _ in range(members)]
    return Trained(
        Posterior.of(*modules, weights=torch.arange(1.0, members + 1) / (members * (members + 1) / 2)), context
    )


def by_definition(module, sequence, context):
    """Σ log p of each token given its window, one at a time."""
    total, half = 0.0, max(1, context // 2)
    for place in range(len(sequence) - 1):
        start = 0 if place < context else ((place - context) // half + 1) * half
        past = torch.tensor([sequence[start : place + 1]])
        assert past.shape[1] <= context
        assert place < context or past.shape[1] > context - half
        log_probs = module.last(past, torch.tensor([past.shape[1]]))
        total += float(log_probs[0, sequence[place + 1]])
    return total


@torch.no_grad()
@pytest.mark.parametrize("context", [1, 2, 5, 6, 100])
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_log_prob_is_the_chain_rule_by_windows(network, context):
    model = made(network, context=context)
    expected = [by_definition(model.posterior.module, own, context) for own in SEQUENCES]
    np.testing.assert_allclose(model.log_prob(VALUES, OFFSETS), expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_steps_with_a_cache_are_the_pass_without_beyond_the_context_too(network, members):
    model = made(network, members)
    sequence = SEQUENCES[-1]
    state, total = model.start(1), 0.0
    for place in range(len(sequence) - 1):
        log_probs, state = model.step(state, torch.tensor([sequence[place]]))
        whole = model.following(np.array(sequence[: place + 1]), np.array([0, place + 1]))
        torch.testing.assert_close(log_probs.double(), whole, rtol=1e-5, atol=1e-5)
        total += float(log_probs[0, sequence[place + 1]])
    expected = model.log_prob(np.array(sequence), np.array([0, len(sequence)]))[0]
    assert total == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("way", [Greedy(), Beam(3)], ids=repr)
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_prompts_of_several_lengths_together_are_those_one_by_one(network, way):
    model = made(network, 2)
    prompts = [own[1:] for own in SEQUENCES[:4]]
    told = torch.nn.utils.rnn.pad_sequence([torch.tensor(own) for own in prompts], batch_first=True, padding_value=-1)
    together = way.decode(model.step, model.start(4), torch.full((4,), V), 9, prompt=told)
    for row, own in enumerate(prompts):
        alone = way.decode(model.step, model.start(1), torch.tensor([V]), 9, prompt=torch.tensor([own]))
        tokens = [token for token in together.tokens[row].tolist() if token >= 0]
        assert tokens == alone.tokens[0].tolist()
        assert alone.log_prob.item() == pytest.approx(together.log_prob[row].item(), rel=1e-5)


@torch.no_grad()
def test_members_are_averaged_as_whole_texts():
    model = made(GRU(6), 3)
    weights = model.posterior.weights.double()
    alone = [Trained(Posterior.of(model.posterior.module_of(s)), CONTEXT).log_prob(VALUES, OFFSETS) for s in range(3)]
    expected = np.log((weights.numpy()[:, None] * np.exp(alone)).sum(0))
    np.testing.assert_allclose(model.log_prob(VALUES, OFFSETS), expected, rtol=1e-6)


def test_windows_predict_every_token_once():
    for context in (1, 2, 3, 8):
        lengths = np.array([1, 2, 7, 8, 9, 40])
        starts, scored, owner = window_starts(lengths, context)
        for text, length in enumerate(lengths):
            own = owner == text
            places = [
                place
                for start, skip in zip(starts[own], scored[own], strict=True)
                for place in range(start + skip, min(start + context, length))
            ]
            assert places == list(range(length))
