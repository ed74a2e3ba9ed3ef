import numpy as np
import torch

from likely.data.rows import Ragged
from likely.models.language.pairs import Pairs, padded, ragged

TARGETS = [np.array([9, *range(length), 9]) for length in (0, 3, 1, 5, 2, 4)]
SOURCES = [np.array([*range(length), 9]) for length in (2, 1, 4, 1, 3, 2)]


def rows(weight=None):
    return Pairs.of(ragged(SOURCES), ragged(TARGETS), weight)


def test_batches_hold_their_rows_and_nothing_after_their_ends():
    data = rows(torch.arange(6.0))
    for index in (torch.tensor([3, 0]), torch.tensor([[1, 2], [4, 4]]), slice(1, 4)):
        batch = data.batch(index)
        numbers = torch.arange(6)[index]
        for place in np.ndindex(*numbers.shape):
            row = int(numbers[place])
            for part, whole in ((batch.x, TARGETS), (batch.condition, SOURCES)):
                own = part[place]
                np.testing.assert_array_equal(own[own >= 0], whole[row])
                assert bool((own[len(whole[row]) :] == -1).all())
            assert batch.weight[place] == row


def test_blocks_go_over_all_rows_in_order_and_weights_are_of_tokens():
    data = rows()
    assert sum(len(block.x) for block in data.blocks(rows=4)) == 6
    assert data.total_weight() == sum(len(own) - 1 for own in TARGETS)
    assert rows(torch.arange(6.0)).total_weight() == sum(row * (len(own) - 1) for row, own in enumerate(TARGETS))
    part = data.subset(torch.tensor([3, 1]))
    assert part.total_weight() == 6 + 4
    np.testing.assert_array_equal(part.batch(slice(0, 1)).x[0], TARGETS[3])


def test_batches_are_of_rows_with_similar_lengths():
    """Of all pairs of lengths 1 … 8, batches of 8 have one length of targets each, and every row comes once."""
    lengths = [(s, t) for s in range(1, 9) for t in range(1, 9)]
    data = Pairs.of(ragged([np.zeros(s, int) for s, _ in lengths]), ragged([np.zeros(t, int) for _, t in lengths]))
    order = data.order(torch.Generator().manual_seed(0), 8)
    assert sorted(order.tolist()) == list(range(64))
    assert all(len({lengths[row][1] for row in batch}) == 1 for batch in order.view(8, 8).tolist())


def test_padding_is_not_a_token():
    assert padded(Ragged.of([[0, 1], [0]])).tolist() == [[0, 1], [0, -1]]
