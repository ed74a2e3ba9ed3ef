"""Attention against its equation, against torch's, and the promises of masks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.func import jacrev, vmap

from likely.core.errors import SpecError
from likely.networks.layers.attention import (
    SCORES,
    AdditiveScore,
    GeneralScore,
    MultiHeadAttention,
    Projections,
    attend,
    attention_weights,
    score_of,
)


@pytest.fixture(autouse=True)
def _double():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def tensors(*shapes):
    return [torch.randn(*shape, requires_grad=True) for shape in shapes]


def written_out(score, q, k):
    """The four scores of one query and one key."""
    match score:
        case "scaled":
            return q @ k / math.sqrt(len(q))
        case "dot":
            return q @ k
        case GeneralScore():
            return q @ score.weight @ k
        case AdditiveScore():
            return (score.out.squeeze(-1) * torch.tanh(score.query.T @ q + score.key.T @ k)).sum()


@pytest.mark.parametrize("name", SCORES)
def test_the_equation(name):
    """h_i = Σ_j a_ij v_j with a_ij = exp(s_ij + m_ij) / Σ_j exp(s_ij + m_ij)."""
    score = score_of(name, 3)
    q, k, v = torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2)
    bias, mask = torch.randn(4, 5), torch.rand(4, 5) < 0.7
    mask[:, 0] = True
    for i in range(4):
        powers = [mask[i, j] * torch.exp(written_out(score, q[i], k[j]) + bias[i, j]) for j in range(5)]
        expected = sum(power * v[j] for j, power in enumerate(powers)) / sum(powers)
        torch.testing.assert_close(attend(q, k, v, mask, score, bias=bias)[i], expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_outputs_and_gradients_are_those_of_the_weights(name, biased, masked, causal):
    score = score_of(name, 4, heads=3)
    q, k, v, b = tensors((2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4), (3, 5, 5))
    mask = torch.rand(2, 1, 5, 5) < 0.6 if masked else None
    bias = b if biased else None
    weights = attention_weights(q, k, mask, score, bias=bias, causal=causal)
    seen = torch.ones(2, 3, 5, 5, dtype=torch.bool) if mask is None else mask.expand(2, 3, 5, 5)
    any_seen = (seen.tril() if causal else seen).any(-1)
    torch.testing.assert_close(weights.sum(-1), any_seen.double())  # 1, and 0 for a query that may look at nothing
    assert (weights >= 0).all()
    out = attend(q, k, v, mask, score, bias=bias, causal=causal)
    torch.testing.assert_close(out, weights @ v)
    wanted = [t for t in (q, k, v, bias) if t is not None]
    by_kernel = torch.autograd.grad(out.square().sum(), wanted, retain_graph=True)
    by_weights = torch.autograd.grad((weights @ v).square().sum(), wanted)
    torch.testing.assert_close(by_kernel, by_weights)
    assert all(gradient.isfinite().all() for gradient in by_kernel)


def test_small_additive_scores_are_a_term_of_the_query_and_one_of_the_key():
    """For small Wq + Uk the tanh is the identity, so a score is a sum of two terms."""
    score = AdditiveScore(3, 3, 4)
    q, k = 1e-6 * torch.randn(2, 3), 1e-6 * torch.randn(5, 3)
    terms = (q @ score.query @ score.out) + (k @ score.key @ score.out).T
    torch.testing.assert_close(score(q, k), terms, rtol=1e-9, atol=1e-15)


def test_learned_scores_join_queries_and_keys_of_different_widths():
    for score in (GeneralScore(3, 5), AdditiveScore(3, 5, hidden=8)):
        out = attend(torch.randn(2, 4, 3), torch.randn(2, 6, 5), torch.randn(2, 6, 7), score=score)
        assert out.shape == (2, 4, 7)


def test_within_torch_func_it_is_the_same_and_has_second_derivatives():
    q, k, v = torch.randn(3, 2, 4, 2), torch.randn(3, 2, 5, 2), torch.randn(3, 2, 5, 2)
    together = vmap(attend)(q, k, v)
    torch.testing.assert_close(together, torch.stack([attend(*row) for row in zip(q, k, v, strict=True)]))

    def energy(flat):
        return attend(flat.view(4, 2), k[0, 0], v[0, 0]).square().sum()

    curvature = jacrev(jacrev(energy))(q[0, 0].flatten())
    torch.testing.assert_close(curvature, curvature.T)
    assert curvature.abs().max() > 0


@pytest.mark.parametrize("bias", [True, False])
def test_one_product_for_queries_keys_and_values_is_as_good_as_two(bias):
    projections, x = Projections(6, heads=2, bias=bias), torch.randn(3, 5, 6, requires_grad=True)
    results = []
    for context in (x, x.clone()):
        parts = projections.split(x, context)
        total = sum((part * part.detach().cos()).sum() for part in parts)
        results.append((*parts, *torch.autograd.grad(total, [x, *projections.query.parameters()])))
    torch.testing.assert_close(*results)


def copied_from(peer, context=None):
    """Our attention with the weights of torch's."""
    width = peer.embed_dim
    ours = MultiHeadAttention(width, peer.num_heads, context=context)
    parts = ours.projections
    with torch.no_grad():
        if peer.in_proj_weight is not None:
            query, key, value = peer.in_proj_weight.chunk(3)
        else:
            query, key, value = peer.q_proj_weight, peer.k_proj_weight, peer.v_proj_weight
        parts.query.weight.copy_(query)
        parts.key_value.weight.copy_(torch.cat([key, value]))
        peer.in_proj_bias.normal_()
        parts.query.bias.copy_(peer.in_proj_bias[:width])
        parts.key_value.bias.copy_(peer.in_proj_bias[width:])
        parts.out.load_state_dict(peer.out_proj.state_dict())
    return ours


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_self_attention_agrees_with_torch(padded, causal):
    peer = nn.MultiheadAttention(12, 3, batch_first=True)
    ours, x = copied_from(peer), torch.randn(4, 6, 12)
    present = torch.arange(6) < torch.tensor([[6], [2], [1], [4]]) if padded else None
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1) if causal else None
    padding = None if present is None else ~present
    out, weights = peer(x, x, x, key_padding_mask=padding, attn_mask=hidden, average_attn_weights=False)
    torch.testing.assert_close(ours(x, present=present, causal=causal), out)
    torch.testing.assert_close(ours.weights(x, present=present, causal=causal), weights)
    if hidden is not None:
        torch.testing.assert_close(ours(x, present=present, mask=~hidden), out)
        torch.testing.assert_close(ours(x, present=present, mask=~hidden.expand(4, 6, 6)), out)


@pytest.mark.parametrize("features", [12, 5])
def test_cross_attention_agrees_with_torch(features):
    peer = nn.MultiheadAttention(12, 3, kdim=features, vdim=features, batch_first=True)
    ours, x, context = copied_from(peer, features), torch.randn(4, 6, 12), torch.randn(4, 7, features)
    out, weights = peer(x, context, context, average_attn_weights=False)
    torch.testing.assert_close(ours(x, context), out)
    torch.testing.assert_close(ours.weights(x, context), weights)


@pytest.mark.parametrize("name", SCORES)
def test_without_positions_it_commutes_with_permutations(name):
    attention, x, order = MultiHeadAttention(8, 2, score=name), torch.randn(3, 6, 8), torch.randperm(6)
    torch.testing.assert_close(attention(x[:, order]), attention(x)[:, order])
    context, other = torch.randn(3, 5, 8), torch.randperm(5)
    torch.testing.assert_close(attention(x, context[:, other]), attention(x, context))


@pytest.mark.parametrize("name", SCORES)
def test_a_causal_mask_leaks_nothing(name):
    """∂ out_t / ∂ x_s is exactly 0 for s > t, by the kernel and within torch.func."""
    attention, x = MultiHeadAttention(8, 2, score=name), torch.randn(1, 5, 8)

    def outputs(x):
        return attention(x, causal=True).sum(-1)[0]

    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for jacobian in (jacrev(outputs)(x), torch.autograd.functional.jacobian(outputs, x)):
        size = jacobian[:, 0].abs().amax(-1)
        assert (size[future] == 0).all()
        assert (size[~future] > 0).all()


@pytest.mark.parametrize("name", SCORES)
def test_what_is_not_there_changes_nothing(name):
    attention, x = MultiHeadAttention(8, 2, score=name), torch.randn(3, 6, 8)
    present = torch.arange(6) < torch.tensor([[6], [2], [4]])
    garbage = torch.where(present.unsqueeze(-1), x, 1e3)
    out = attention(garbage, present=present)
    for row, length in enumerate((6, 2, 4)):
        torch.testing.assert_close(out[row, :length], attention(x[row : row + 1, :length])[0])


def test_dropped_weights_have_all_weights_as_their_mean(seed):
    """The mean of 20 000 passes is within 5 of its standard errors, for 12 numbers: a false alarm in 7 of 10⁶ seeds."""
    torch.manual_seed(seed)
    attention, x = MultiHeadAttention(4, 2, dropout=0.4), torch.randn(1, 3, 4)
    draws = attention(x.expand(20_000, -1, -1))
    error = draws.std(0) / 20_000**0.5
    assert ((draws.mean(0) - attention.eval()(x)[0]).abs() < 5 * error).all()
    assert (error > 0).all()
    torch.testing.assert_close(attention(x), attention(x))


def test_scores_start_at_order_one(seed):
    """q and k of unit variance have scores of unit variance, within 20 %, except the plain dot product: d.

    The variance has a relative standard error of 3.4 % or less: √(2/64²) by the 64 × 64 weights, √(2/(200·64)) by
    each of q and k, and a quarter of 1 % by their products. So 20 % are 6 of it: a false alarm in 1 of 10⁸ seeds.
    """
    torch.manual_seed(seed)
    q, k = torch.randn(200, 64), torch.randn(200, 64)
    for name, size in {"scaled": 1.0, "general": 1.0, "dot": 64.0}.items():
        score = score_of(name, 64)
        scores = score(q, k) if callable(score) else q @ k.T * (0.125 if name == "scaled" else 1.0)
        assert abs(scores.var() / size - 1) < 0.2
    assert 0.1 < score_of("additive", 64)(q, k).var() < 2


def test_single_precision_and_an_empty_batch():
    attention = MultiHeadAttention(8, 2).float()
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(attention(x.float()).double(), attention.double()(x), rtol=1e-5, atol=1e-5)
    assert attention(torch.empty(0, 3, 8)).shape == (0, 3, 8)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(SpecError, match="heads=5 does not divide width=12; 1, 2, 3, 4, 6 or 12 would do"):
        MultiHeadAttention(12, 5)
    with pytest.raises(SpecError, match="heads=0 does not divide"):
        MultiHeadAttention(12, 0)


def test_unknown_scores_are_refused():
    with pytest.raises(SpecError, match="Unknown score 'cosine'; known: scaled, dot, general, additive"):
        MultiHeadAttention(4, 2, score="cosine")
    with pytest.raises(SpecError, match="score='general' is neither"):
        attend(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2), score="general")
