from __future__ import annotations

import torch

from likely.inference.training.early_stopping import Best


def run(best, epochs):
    """Give each epoch's scores, with tensors that hold the number of the epoch; say after which it stopped."""
    for epoch, scores in enumerate(epochs, 1):
        values = torch.full((best.members, 2), float(epoch)) if best.members > 1 else torch.full((2,), float(epoch))
        if best.update(torch.tensor(scores, dtype=torch.float64), [values]):
            return epoch
    return None


def test_the_best_tensors_are_kept_and_patience_counts_from_them():
    best = Best(1, patience=2)
    assert run(best, [[3.0], [1.0], [2.0], [1.5], [0.0]]) == 4
    assert best.tensors[0].tolist() == [2.0, 2.0]


def test_without_patience_it_never_stops():
    best = Best(1, patience=None)
    assert run(best, [[1.0]] + [[2.0]] * 50) is None
    assert best.tensors[0].tolist() == [1.0, 1.0]


def test_an_equal_score_is_not_better():
    best = Best(1, patience=3)
    assert run(best, [[1.0]] * 10) == 4
    assert best.tensors[0].tolist() == [1.0, 1.0]


def test_members_wait_each_for_themselves():
    """The first runs out of patience after epoch 2 and takes no later score; the second goes on to epoch 4."""
    best = Best(2, patience=1)
    assert run(best, [[1.0, 5.0], [2.0, 4.0], [0.0, 3.0], [0.0, 3.5]]) == 4
    assert best.tensors[0].tolist() == [[1.0, 1.0], [3.0, 3.0]]


def test_a_score_that_is_not_a_number_is_never_better():
    best = Best(1, patience=5)
    run(best, [[1.0], [float("nan")], [2.0]])
    assert best.tensors[0].tolist() == [1.0, 1.0]


def test_state_and_restore_are_inverse():
    scores = [[3.0], [1.0], [2.0], [1.5]]
    whole, first, second = Best(1, 2), Best(1, 2), Best(1, 2)
    run(first, scores[:3])
    second.restore(first.state())
    assert second.update(torch.tensor([1.5], dtype=torch.float64), [torch.zeros(2)])
    run(whole, scores)
    assert torch.equal(whole.scores, second.scores)
    assert torch.equal(whole.tensors[0], second.tensors[0])
