"""Linear attention equals its quadratic form, and costs in proportion to the length."""

from __future__ import annotations

import pytest
import torch
from torch.func import vmap

from likely.networks.layers.linear_attention import LinearAttention, elu_plus_one, linear_attend


@pytest.fixture(autouse=True)
def _double():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def quadratic(q, k, v, present=None, causal=False):
    """h_i = Σ_j φ(q_i)ᵀφ(k_j) v_j / Σ_j φ(q_i)ᵀφ(k_j), with all pairs."""
    scores = elu_plus_one(q) @ elu_plus_one(k).mT
    if present is not None:
        scores = scores * present.unsqueeze(-2)
    scores = scores.tril() if causal else scores
    return scores @ v / scores.sum(-1, keepdim=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("steps", [1, 5, 63, 64, 65, 200])
def test_it_equals_its_quadratic_form_and_so_do_its_gradients(steps, causal):
    inputs = [torch.randn(2, 3, steps, size, requires_grad=True) for size in (4, 4, 5)]
    fast, slow = linear_attend(*inputs, causal=causal), quadratic(*inputs, causal=causal)
    torch.testing.assert_close(fast, slow)
    pairs = [torch.autograd.grad(out.sin().sum(), inputs) for out in (fast, slow)]
    torch.testing.assert_close(*pairs)


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_not_there_changes_nothing(causal):
    q, k, v = (torch.randn(2, 3, 70, 4) for _ in range(3))
    present = torch.arange(70) < torch.tensor([[[70]], [[66]]])
    torch.testing.assert_close(
        linear_attend(q, k, v, present, causal=causal), quadratic(q, k, v, present, causal=causal)
    )
    attention, x = LinearAttention(8, 2), torch.randn(2, 70, 8)
    garbage = torch.where(present[:, 0].unsqueeze(-1), x, 1e3)
    out = attention(garbage, present=present[:, 0], causal=causal)
    torch.testing.assert_close(out[1:, :66], attention(x[1:, :66], causal=causal))


def test_single_precision_stays_close_over_thousands_of_steps():
    q, k, v = (torch.randn(1, 2, 2000, 8) for _ in range(3))
    single = linear_attend(*(tensor.float() for tensor in (q, k, v)), causal=True).double()
    torch.testing.assert_close(single, quadratic(q, k, v, causal=True), rtol=1e-5, atol=1e-5)


def test_features_are_positive_and_continuous():
    x = torch.linspace(-20, 20, 1001)
    assert (elu_plus_one(x) > 0).all()
    torch.testing.assert_close(elu_plus_one(x), torch.where(x > 0, x + 1, x.exp()), rtol=1e-6, atol=1e-12)


def test_the_causal_form_leaks_nothing():
    attention, x = LinearAttention(4, 2), torch.randn(1, 130, 4)
    jacobian = torch.func.jacrev(lambda x: attention(x, causal=True).sum(-1)[0])(x)[:, 0].abs().amax(-1)
    future = torch.ones(130, 130, dtype=torch.bool).triu(1)
    assert (jacobian[future] == 0).all()
    assert (jacobian[~future] > 0).all()


def test_without_positions_it_commutes_with_permutations():
    attention, x, order = LinearAttention(8, 2), torch.randn(3, 6, 8), torch.randperm(6)
    torch.testing.assert_close(attention(x[:, order]), attention(x)[:, order])
    context = torch.randn(3, 5, 8)
    torch.testing.assert_close(attention(x, context.flip(1)), attention(x, context))


def test_members_run_stacked():
    q, k, v = (torch.randn(3, 2, 70, 4) for _ in range(3))
    stacked = vmap(lambda *inputs: linear_attend(*inputs, causal=True))(q, k, v)
    torch.testing.assert_close(stacked, linear_attend(q, k, v, causal=True))


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_with_the_length_and_not_with_its_square(causal):
    """What is kept for the backward pass doubles, within 5 %, when the length does."""
    attention = LinearAttention(16, 2)

    def kept(steps):
        sizes = {}

        def note(tensor):
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            out = attention(torch.randn(1, steps, 16), causal=causal)
        return sum(sizes.values()) if out.requires_grad else 0

    assert 1.8 < kept(2048) / kept(1024) < 2.1


def test_an_empty_batch():
    assert LinearAttention(8, 2)(torch.empty(0, 3, 8), causal=True).shape == (0, 3, 8)
