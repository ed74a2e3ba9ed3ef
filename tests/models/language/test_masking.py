from __future__ import annotations

import math

import torch

from likely.models.language.masking import hide


def hidden(rows, fraction=0.15, tokens=50, length=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(tokens, (rows, length), generator=generator)
    return x, hide(x, fraction, tokens, generator)


def test_a_fraction_is_chosen_and_nothing_else_changes():
    x, (seen, places, wanted) = hidden(30)
    assert places.shape == (30, 6)
    assert all(len(set(row)) == 6 for row in places.tolist())
    assert torch.equal(x.gather(1, places), wanted)
    assert torch.equal(x, seen.scatter(1, places, wanted))


def test_eight_in_ten_are_masked_one_is_swapped_and_one_is_kept(seed):
    """Of 24,000, fractions are within 5 standard errors: a false alarm in a million, three times."""
    _, (seen, places, wanted) = hidden(4_000, seed=seed)
    shown = seen.gather(1, places)
    masked, kept = (shown == 50).double().mean(), (shown == wanted).double().mean()
    for found, expected in ((masked, 0.8), (kept, 0.1 + 0.1 / 50), (1 - masked - kept, 0.1 * 49 / 50)):
        assert abs(float(found) - expected) < 5 * math.sqrt(expected * (1 - expected) / wanted.numel())


def test_short_rows_have_one_and_empty_ones_none():
    x = torch.tensor([[3, 1, -1, -1], [-1, -1, -1, -1], [2, 9, 0, 1]])  # 9 is a boundary
    seen, _, wanted = hide(x, 0.1, 5, torch.Generator().manual_seed(0))
    assert (wanted >= 0).sum(1).tolist() == [1, 0, 1]
    assert torch.equal(seen < 0, x < 0)
    assert seen[2, 1] == 9


def test_the_generator_decides():
    assert torch.equal(hidden(5)[1].places, hidden(5)[1].places)
    assert not torch.equal(hidden(5)[1].places, hidden(5, seed=1)[1].places)
