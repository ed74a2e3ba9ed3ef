import torch
from torch import nn

from likely.core.random import drawing, isolated
from likely.networks.layers import Dropout, dropped


def test_in_evaluation_and_without_probability_nothing_is_dropped():
    x = torch.randn(5, 3)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert torch.equal(Dropout(1.0)(x), torch.zeros_like(x))
    assert dropped(x[:0], 0.5).shape == (0, 3)


def test_the_mask_is_that_of_torch_and_owned_by_the_generator():
    x = torch.randn(100, 30)
    before = torch.get_rng_state()
    with drawing(7):
        masked = Dropout(0.3)(x)
    assert torch.equal(torch.get_rng_state(), before)
    with isolated(7):
        assert torch.equal(nn.Dropout(0.3)(x), masked)


def test_gradients_pass_where_numbers_were_kept():
    x = torch.randn(50, requires_grad=True)
    masked = dropped(x, 0.4)
    masked.sum().backward()
    assert torch.equal(x.grad == 0, masked == 0)
    torch.testing.assert_close(x.grad[x.grad != 0], torch.full_like(x.grad[x.grad != 0], 1 / 0.6))


def test_members_under_vmap_have_masks_of_their_own():
    x = torch.ones(64)
    with drawing(0):
        masked = torch.vmap(lambda scale: scale * Dropout(0.5)(x), randomness="different")(torch.ones(4))
    assert len({tuple(row.tolist()) for row in masked}) == 4  # two rows of 64 agree with probability 2⁻⁶⁴
