import pytest
import torch

from likely.networks.layers.attentive import AttentiveDecoder
from likely.networks.layers.recurrent import GRULayer, LSTMLayer, RNNLayer

torch.manual_seed(0)
X, CONTEXT = torch.randn(3, 4, 2), torch.randn(3, 5, 6)
SEEN = torch.arange(5) < torch.tensor([[5], [2], [4]])


def scored(decoder, h, m):
    """The score of each pair of a step and a state, by its formula."""
    if decoder.score == "dot":
        return h @ m.mT
    if decoder.score == "scaled":
        return h @ m.mT / 3**0.5
    if hasattr(decoder.score, "weight"):
        return torch.einsum("nti,ij,nsj->nts", h, decoder.score.weight, m)
    both = (h @ decoder.score.query)[:, :, None] + (m @ decoder.score.key)[:, None]
    return (both.tanh() @ decoder.score.out).squeeze(-1)


@torch.no_grad()
@pytest.mark.parametrize("score", ["dot", "scaled", "general", "additive"])
def test_each_score_is_its_formula_and_the_output_its_equation(score):
    decoder = AttentiveDecoder([GRULayer(2, 3)], context=6, score=score)
    m, mean = decoder.memory(CONTEXT), (CONTEXT * SEEN[..., None]).sum(1) / SEEN.sum(1, keepdim=True)
    state, steps = (torch.tanh(decoder.first(mean)),), []
    for x in X.unbind(1):
        h, state = decoder.layers[0].step(x, state)
        steps.append(h)
    h = torch.stack(steps, 1)
    weights = scored(decoder, h, m).masked_fill(~SEEN[:, None], -torch.inf).softmax(-1)
    torch.testing.assert_close(decoder.weights(X, CONTEXT, SEEN), weights, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4))
    expected = decoder.out(torch.cat([h, weights @ m], -1)).tanh()
    torch.testing.assert_close(decoder(X, CONTEXT, SEEN), expected, rtol=1e-5, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("kind", [RNNLayer, GRULayer, LSTMLayer])
def test_steps_are_the_whole_pass_with_several_rows_for_each_source(kind):
    decoder = AttentiveDecoder([kind(2, 6), kind(6, 6)], context=6)
    assert decoder.memory is None  # states are as wide as the decoder
    whole, looked_at = decoder(X, CONTEXT, SEEN), decoder.looked_at(CONTEXT)
    twice = torch.arange(3).repeat_interleave(2)
    state = tuple(tuple(part[twice] for part in own) for own in decoder.start(CONTEXT, SEEN))
    for t in range(4):
        out, state = decoder.step(X[twice, t], state, looked_at, SEEN)
        torch.testing.assert_close(out, whole[twice, t], rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_what_is_not_seen_changes_nothing():
    decoder = AttentiveDecoder([LSTMLayer(2, 3)], context=6, score="additive")
    other = torch.where(SEEN[..., None], CONTEXT, 7.0)
    torch.testing.assert_close(decoder(X, other, SEEN), decoder(X, CONTEXT, SEEN))
