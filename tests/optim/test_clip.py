"""Clipping by norm: never longer than asked, and in the same direction."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.optim import clip_norm_


def gradients(scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [scale * torch.randn(shape, generator=generator).double() for shape in [(5, 4, 3), (5, 4), (5,)]]


def flat(parts: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("max_norm", [0.1, 1.0, 50.0])
def test_the_norm_is_at_most_the_bound_and_the_direction_is_kept(scale, max_norm):
    before, after = flat(gradients(scale)), gradients(scale)
    norm = clip_norm_(after, max_norm)
    clipped = flat(after)
    torch.testing.assert_close(norm, before.norm())
    assert clipped.norm() <= max_norm * (1 + 1e-12)
    torch.testing.assert_close(torch.dot(before, clipped), before.norm() * clipped.norm())
    torch.testing.assert_close(clipped.norm(), before.norm().clamp(max=max_norm))


def test_short_gradients_are_left_alone():
    after = gradients(1e-3)
    clip_norm_(after, 1.0)
    assert all(torch.equal(a, b) for a, b in zip(after, gradients(1e-3), strict=True))


def test_stacked_members_are_clipped_each_by_itself():
    together = gradients()
    scale = torch.logspace(-2, 2, 5).double()  # short and long members
    for part in together:
        part.mul_(scale.reshape(-1, *[1] * (part.ndim - 1)))
    apart = [[part[member].clone() for part in together] for member in range(5)]
    norms = clip_norm_(together, 2.0, stacked=True)
    for member, own in enumerate(apart):
        torch.testing.assert_close(norms[member], clip_norm_(own, 2.0))
        torch.testing.assert_close(flat([part[member] for part in together]), flat(own))


@pytest.mark.parametrize("stacked", [False, True])
def test_zeros_stay_zeros_and_missing_gradients_are_passed_over(stacked):
    zero = torch.zeros(3, 2)
    norm = clip_norm_([None, zero], 1.0, stacked)
    assert (norm == 0).all()
    assert zero.isfinite().all()
    assert clip_norm_([None], 1.0, stacked) == 0


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("scale", [1e18, 1e30, 3e37])
def test_gradients_whose_squares_overflow_keep_their_direction(scale, stacked):
    unit = [part.float() for part in gradients()]
    huge = [scale * part for part in unit]
    norms, expected = clip_norm_(huge, 1.0, stacked), clip_norm_(unit, 1.0, stacked)
    torch.testing.assert_close(norms / scale, expected, rtol=1e-5, atol=0)
    for own, plain in zip(huge, unit, strict=True):
        torch.testing.assert_close(own, plain, rtol=1e-5, atol=1e-7)


def test_a_member_whose_squares_overflow_does_not_move_the_others():
    members = torch.tensor([[3e30, 4e30], [0.3, 0.4], [0.0, 0.0], [30.0, 40.0]])
    norms = clip_norm_([members], 1.0, stacked=True)
    torch.testing.assert_close(norms, torch.tensor([5e30, 0.5, 0.0, 50.0]))
    torch.testing.assert_close(members, torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0], [0.6, 0.8]]))


def test_an_infinite_gradient_is_not_made_to_look_finite():
    """It has no direction: whoever steps on it must see that."""
    gradient = torch.tensor([1.0, float("inf")])
    norm = clip_norm_([gradient], 1.0)
    assert not norm.isfinite()
    assert not gradient.isfinite().any()


def test_the_bound_is_positive():
    with pytest.raises(SpecError, match="max_norm must be positive; found 0"):
        clip_norm_([torch.ones(2)], 0)
