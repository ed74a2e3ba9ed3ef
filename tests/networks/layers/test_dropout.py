import pytest
import torch
from torch import nn

from likely.core.random import drawing, isolated
from likely.networks.layers import Dropout, dropped
from likely.networks.layers.dropout import MANY, ChannelDropout, entry_mask, mask_like, sharing_masks


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


@pytest.mark.parametrize("p", [0.1, 0.5, 0.999])
def test_large_masks_keep_their_fraction_in_every_part_of_an_integer(p, seed):
    """Of 4 places × 3 p each deviates by 5 standard errors with probability 6e-7: 7e-6 in all."""
    n = 40 * MANY
    with drawing(seed):
        mask = mask_like(torch.zeros(n), p)
    kept = (mask > 0).double().view(-1, 4)
    assert ((kept.mean(0) - (1 - p)).abs() < 5 * (p * (1 - p) / (n / 4)) ** 0.5 + 2**-16).all()
    neighbours = torch.corrcoef(kept.T).fill_diagonal_(0)
    assert neighbours.abs().max() < 5.5 / (n / 4) ** 0.5
    assert abs(mask.max().item() * (1 - p) - 1) < 2**-16 / (1 - p)


def test_large_masks_repeat_with_their_generator_and_drop_all_or_nothing():
    x = torch.ones(3, MANY, dtype=torch.float64)
    with drawing(3):
        first = mask_like(x, 0.2)
    with drawing(3):
        assert torch.equal(mask_like(x, 0.2), first)
    assert first.shape == x.shape
    assert first.dtype == x.dtype
    assert torch.equal(mask_like(x, 1.0), torch.zeros_like(x))
    assert torch.equal(mask_like(x, 0.0), torch.ones_like(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_large_masks_lie_in_memory_as_the_numbers_do(dtype):
    """And one generator draws the same bits for any dtype, from the first place in memory to the last."""
    with drawing(5):
        plain = mask_like(torch.zeros(2 * MANY), 0.25) > 0
    for order in (torch.contiguous_format, torch.channels_last):
        x = torch.ones(20, 10, 10, 10, dtype=dtype).contiguous(memory_format=order).requires_grad_()
        with drawing(5):
            mask = mask_like(x, 0.25)
        assert mask.dtype == dtype
        assert mask.stride() == x.stride()
        assert torch.equal(mask.as_strided((2 * MANY,), (1,)) > 0, plain)
        assert torch.equal(mask.unique(), torch.tensor([0.0, 4 / 3], dtype=dtype))
        assert not mask.requires_grad
    with drawing(5):
        part = mask_like(torch.zeros(20, 10, 10, 20)[..., ::2], 0.25)  # of a matrix with gaps: without them
    assert torch.equal(part.flatten() > 0, plain)


def test_rows_of_a_part_share_its_mask_however_many_they_are():
    """Three masks of 200 numbers each, for two rows or for five; outside there is one for each row again."""
    with drawing(1), sharing_masks(3):
        few = mask_like(torch.zeros(6, 200), 0.5)
    with drawing(1), sharing_masks(3):
        many = mask_like(torch.zeros(15, 200), 0.5)
    assert torch.equal(few[::2], few[1::2])
    assert torch.equal(few[::2], many[::5])
    assert len(many.unique(dim=0)) == 3
    with sharing_masks(3), sharing_masks(0):
        assert len(mask_like(torch.zeros(6, 200), 0.5).unique(dim=0)) == 6


def test_a_place_of_a_shared_mask_has_its_number_whatever_lies_beside_it():
    """Longer sequences, more draws: the places that there were before are as they were."""
    masks = []
    for draws, steps in ((3, 5), (4, 9)):
        with drawing(1), sharing_masks(draws):
            masks.append(mask_like(torch.zeros(2 * draws, steps, steps, 6), 0.5)[::2])
    small, large = masks
    assert torch.equal(large[:3, :5, :5], small)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.999])
def test_numbers_of_shared_masks_are_those_of_independent_draws(p, seed):
    """The fraction kept, and correlations along each axis: 4 numbers beyond 5 standard errors, 2e-6 in all."""
    shape = (40, 50, 200)
    with drawing(seed), sharing_masks(40):
        mask = mask_like(torch.zeros(shape), p)
    kept = (mask > 0).double() - (1 - p)
    count, variance = kept.numel(), p * (1 - p)
    assert abs(float(kept.mean())) < 5 * (variance / count) ** 0.5
    for axis in range(3):
        beside = kept * kept.roll(1, axis)
        assert abs(float(beside.mean())) < 5 * variance / count**0.5
    assert mask.unique().tolist() == pytest.approx([0, 1 / (1 - p)])
    with sharing_masks(40):
        assert torch.equal(mask_like(torch.zeros(shape), 1.0), torch.zeros(shape))


def test_calls_have_masks_of_their_own():
    with drawing(0), sharing_masks(1):
        assert not torch.equal(mask_like(torch.zeros(1, 200), 0.5), mask_like(torch.zeros(1, 200), 0.5))


def test_entries_of_a_sparse_matrix_have_the_mask_of_their_column():
    columns = torch.tensor([0, 7, 3, 7, 0, 7, 3, 7])  # of two draws
    with drawing(0), sharing_masks(2):
        mask = entry_mask(torch.ones(8), columns, 9, 0.5)
    with drawing(0), sharing_masks(2):
        dense = mask_like(torch.zeros(2, 9), 0.5)
    assert torch.equal(mask, dense.repeat_interleave(4, 0)[torch.arange(8), columns])


def test_channels_are_kept_or_dropped_whole(seed):
    """The fraction kept of 1,000 is within 6.4 standard errors of 1 − p: a false alarm in 1 of 10⁹ seeds."""
    x = torch.rand(200, 5, 3, 4) + 1
    with drawing(seed):
        out = ChannelDropout(0.4)(x)
    assert torch.equal((out > 0).all(-1).all(-1), (out > 0).any(-1).any(-1))
    torch.testing.assert_close(out[out > 0], (x / 0.6)[out > 0])
    assert 0.5 < float((out > 0).double().mean()) < 0.7
    assert ChannelDropout(0.4).eval()(x) is x
