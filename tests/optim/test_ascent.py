"""Ascent inside a ball: the maximum of linear and concave losses, the range, and when rows are left alone."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.optim.ascent import FGSM, PGD, followed
from likely.optim.ball import dual, sizes
from likely.optim.bounds import Bounds

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(6, 4, generator=GENERATOR, dtype=torch.float64)
W = torch.randn(6, 4, generator=GENERATOR, dtype=torch.float64)
ANY, NORMS = (1.0, 1.5, 2.0, 3.0, math.inf), (1.0, 2.0, math.inf)


class Linear:
    """L = wᵀx of each row, fooled where it is above a level."""

    def __init__(self, level=1e6):
        self.level, self.calls = level, 0

    def evaluate(self, x, y):
        loss = (y * x).sum(1)
        return loss, loss - self.level

    def follow(self, x, y):
        self.calls += 1
        return followed(self, x, y)


class Hill(Linear):
    """L = −‖x − top‖², whose maximum over a ball about x is at the nearest point of the ball to the top."""

    def evaluate(self, x, y):
        loss = -(x - y).square().sum(1)
        return loss, loss - self.level


@pytest.mark.parametrize("norm", ANY)
def test_one_step_is_the_best_of_a_linear_loss(norm):
    """max wᵀδ over ‖δ‖ₚ ≤ r is r ‖w‖_q."""
    found = FGSM(0.3, norm=norm).perturb(Linear(), X, W, Bounds())
    gain = (W * (found.point - X)).sum(1)
    torch.testing.assert_close(gain, 0.3 * sizes(W, dual(norm)))
    torch.testing.assert_close(sizes(found.point - X, norm), torch.full((6,), 0.3, dtype=X.dtype))


@pytest.mark.parametrize("norm", NORMS)
def test_many_steps_are_no_worse_on_a_linear_loss(norm):
    found = PGD(0.3, norm=norm, steps=30).perturb(Linear(), X, W, Bounds())
    gain = (W * (found.point - X)).sum(1)
    torch.testing.assert_close(gain, 0.3 * sizes(W, dual(norm)), rtol=1e-3, atol=0)


@pytest.mark.parametrize("norm", NORMS)
def test_ascent_finds_the_nearest_point_to_the_top_of_a_hill(norm):
    """In the 2-norm on the way to it, in the ∞-norm entry by entry, in the 1-norm by soft thresholding."""
    top, radius = X + torch.tensor([1.0, -0.5, 0.2, 0.1], dtype=X.dtype), 0.4
    point = (
        PGD(radius, norm=norm, steps=400, step_size=0.002 if norm != 1 else "auto")
        .perturb(Hill(), X, top, Bounds())
        .point
    )
    change = top - X
    if norm == 2:
        expected = X + radius * change / change.norm(dim=1, keepdim=True)
    elif norm == 1:  # (1, −0.5, 0.2, 0.1), each 0.6 nearer to 0
        expected = X + torch.tensor([0.4, 0.0, 0.0, 0.0], dtype=X.dtype)
    else:
        expected = X + change.clamp(-radius, radius)
    torch.testing.assert_close(point, expected, rtol=0, atol=5e-3)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [FGSM, PGD])
def test_points_stay_in_the_ball_and_in_the_range(norm, kind):
    bounds = Bounds(X - 0.05, X + torch.linspace(0.0, 1.0, 4, dtype=X.dtype))
    attack = kind(0.3, norm=norm) if kind is FGSM else PGD(0.3, norm=norm, steps=7, restarts=3)
    for point in (
        attack.perturb(Linear(), X, W, bounds).point,
        attack.ascend(lambda x: W, X, bounds),
    ):
        assert bool((sizes(point - X, norm) <= 0.3 * (1 + 1e-6)).all())
        assert bool(((point >= bounds.low - 1e-12) & (point <= bounds.high + 1e-12)).all())


@pytest.mark.parametrize("kind", [FGSM, PGD])
def test_rows_that_are_fooled_are_left_alone(kind):
    """A row above the level stays where it is; the others move until they are above it, where the ball allows."""
    level = float((W * X).sum(1).median()) + 1e-9
    victim = Linear(level)
    found = kind(0.5).perturb(victim, X, W, Bounds())
    before = (W * X).sum(1)
    already = before > level
    torch.testing.assert_close(found.point[already], X[already], rtol=0, atol=0)
    assert not found.steps[already].any()
    able = before + 0.5 * W.abs().sum(1) > level
    assert torch.equal(found.margin > 0, already | able)
    assert bool((found.steps[~already] >= 1).all())


def test_restarts_never_hurt_and_end_when_all_are_fooled():
    """A loss with a flat start: from x itself no gradient leads on, from others it does, but for 3e-5 of the ball."""

    class Plateau(Linear):
        def evaluate(self, x, y):
            loss = (x - y).square().sum(1).clamp_min(0.01)
            return loss, loss - self.level

    flat = PGD(1.0, steps=5).perturb(Plateau(0.0), X, X, Bounds())
    again = PGD(1.0, steps=5, restarts=3).perturb(Plateau(100.0), X, X, Bounds())
    torch.testing.assert_close(flat.margin, torch.full((6,), 0.01, dtype=X.dtype))
    assert bool((again.margin + 100.0 > flat.margin).all())
    victim = Linear(-1e6)
    PGD(1.0, restarts=5).perturb(victim, X, W, Bounds())
    assert victim.calls == 1


def test_sizes_of_steps():
    assert PGD(0.3, steps=10).size(0) == pytest.approx(2.5 * 0.3 / 10)
    assert [PGD(0.3, norm=1).size(step) for step in (0, 1, 4)] == pytest.approx([0.3, 0.2, 0.1])
    assert PGD(0.3, step_size=0.05).size(7) == 0.05
    assert PGD(0.3, step_size=0.06).scaled(0.5) == PGD(0.15, step_size=0.03)
    assert FGSM(0.3, norm=2).scaled(2.0) == FGSM(0.6, norm=2)
    assert FGSM(0.1, norm=math.inf) == FGSM(0.1, norm="inf")


def test_followed_is_the_gradient_of_each_row_by_itself():
    loss, margin, gradient = followed(Hill(-3.0), X, W)
    torch.testing.assert_close(gradient, -2 * (X - W))
    torch.testing.assert_close(margin, loss + 3.0)
    assert not loss.requires_grad
    assert not X.requires_grad

    class Rounded(Linear):
        def evaluate(self, x, y):
            return super().evaluate(x.detach(), y)

    with pytest.raises(SpecError, match="The network gives no gradient with respect to its inputs"):
        followed(Rounded(), X, W)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: FGSM(0.0), r"radius=0.0\): radius must be a positive number, in the units of X"),
        (lambda: FGSM(0.1, norm=0.5), r"norm=0.5\): norm must be a number p from 1 to inf"),
        (lambda: PGD(0.1, norm=3), r"norm=3\): norm must be inf, 2 or 1"),
        (lambda: PGD(0.1, steps=0), r"steps=0\): steps must be an integer, 1 or more"),
        (lambda: PGD(0.1, step_size=-1.0), r"step_size=-1.0\): step_size must be a positive number"),
        (lambda: PGD(0.1, restarts=0), r"restarts=0\): restarts must be an integer, 1 or more"),
    ],
)
def test_what_means_nothing_is_named(made, words):
    with pytest.raises(SpecError, match=words):
        made()
