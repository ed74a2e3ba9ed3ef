from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, r2_score

from likely import SupportVector
from likely.core.errors import DataError
from likely.models.kernel.scoring import quality


@pytest.mark.parametrize(("labels", "peer"), [(True, accuracy_score), (False, r2_score)])
def test_missing_targets_do_not_count_and_weights_do(labels, peer):
    actual, predicted = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 0, 0, 0])
    seen, weight = np.array([True, True, True, True, False]), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    expected = peer(actual[:4], predicted[:4], sample_weight=weight[:4].numpy())
    assert quality(actual, predicted, seen, weight, labels) == pytest.approx(expected)


def test_nothing_to_score_is_said():
    model = SupportVector().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    with pytest.raises(DataError, match="y has no target to score"):
        model.score([[0.0], [1.0]], [None, None])
