"""Units of a flow: centred and scaled columns, heavy tails drawn in, both undone exactly."""

from __future__ import annotations

import numpy as np
import torch

from likely.models.generative.transforms import Units


def test_heavy_tails_are_drawn_in_and_come_back():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(np.column_stack([rng.normal(5, 2, 500), rng.standard_cauchy(500)]))
    units = Units((2,)).double()
    units.adapt(x, None)
    assert units.heavy.tolist() == [0.0, 1.0]
    z, log_det = units(x)
    assert z[:, 1].abs().max() < 12
    torch.testing.assert_close(units.inverse(z), x, rtol=1e-9, atol=1e-9)
    for row, own in zip(x[:5], log_det, strict=False):
        matrix = torch.autograd.functional.jacobian(lambda at: units(at[None])[0][0], row)
        torch.testing.assert_close(own, torch.linalg.slogdet(matrix).logabsdet)


def test_rows_far_out_have_finite_images():
    """In float32, where the square of such a row is infinite: of heavy columns and of others."""
    units = Units((2,))
    units.load_state_dict(units.state_dict() | {"heavy": torch.tensor([0.0, 1.0])})
    z, log_det = units(torch.tensor([[1e25, 0.0], [0.0, -1e25]]))
    assert z.isfinite().all()
    assert log_det.isfinite().all()


def test_columns_without_tails_take_the_short_way_to_the_same_numbers():
    rows = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    short, long = Units((3,)), Units((3,))
    short.adapt(rows, None)
    long.load_state_dict(short.state_dict())
    assert not short.bends
    assert not long.bends
    long.bends = True
    for got, expected in zip(long(rows), short(rows), strict=True):
        torch.testing.assert_close(got, expected.expand_as(got))
    torch.testing.assert_close(long.inverse(rows), short.inverse(rows))


def test_weights_decide_the_units():
    x = torch.tensor([[0.0], [10.0], [1000.0]], dtype=torch.float64)
    units = Units((1,)).double()
    units.adapt(x, torch.tensor([1.0, 1.0, 0.0]))
    assert units.centre.tolist() == [5.0]
    assert units.scale.tolist() == [5.0]


def test_a_column_with_a_floor_stays_above_it():
    """A bijection of (floor, ∞) and the line, with its exact volume; below the floor there is no density."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(np.column_stack([rng.exponential(3.0, 200), rng.normal(size=200)]))
    units = Units((2,)).double()
    units.adapt(x, None, torch.tensor([0.0, -torch.inf], dtype=torch.float64))
    z, log_det = units(x)
    torch.testing.assert_close(units.inverse(z), x, rtol=1e-10, atol=1e-10)
    for row, own in zip(x[:5], log_det, strict=False):
        matrix = torch.autograd.functional.jacobian(lambda at: units(at[None])[0][0], row)
        torch.testing.assert_close(own, torch.linalg.slogdet(matrix).logabsdet)
    far = units.inverse(torch.tensor([[-1e4, -1e4], [50.0, 50.0]], dtype=torch.float64))
    assert (far[:, 0] > 0).all()
    assert far.isfinite().all()
    assert float(units(torch.tensor([[-1.0, 0.0]], dtype=torch.float64))[1]) == -torch.inf
