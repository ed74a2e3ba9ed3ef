"""Functions and modules as what is attacked: as they evaluate, whatever their mode, and rows at their door."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely.core.errors import DataError, SpecError
from likely.robust import FGSM, PGD, attack
from likely.robust.functions import evaluating, rows_for


def test_modules_answer_as_they_evaluate_and_stay_in_their_mode():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    net[3].eval()
    x = torch.rand(20, 4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = [attack(net, x, None, PGD(0.5, steps=5)) for _ in range(2)]
    assert [part.training for part in net.modules()] == [True, True, True, True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    same = attack(net.eval(), x, None, PGD(0.5, steps=5))
    for each in found:
        assert torch.equal(each.perturbed, same.perturbed)


def test_a_module_that_cannot_be_copied_is_refused_in_words():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.ones(2, requires_grad=True) * 2  # no leaf

        def forward(self, x):
            return x * self.scale

    with pytest.raises(SpecError, match=r"Held in training.* call model.eval\(\) first"):
        attack(Held(), torch.rand(5, 2), None, FGSM(0.1))
    attack(Held().eval(), torch.rand(5, 2), None, FGSM(0.1))


def test_functions_are_attacked_too(clouds):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    X = clouds[0].astype(np.float32)
    labels = net(torch.from_numpy(X)).argmax(1).numpy()
    found = attack(net, X, labels, PGD(1.0, steps=5))
    np.testing.assert_array_equal(found.success, net(torch.from_numpy(found.perturbed)).argmax(1).numpy() != labels)
    assert found.success.any()
    same = attack(net, torch.from_numpy(X), None, PGD(1.0, steps=5))
    np.testing.assert_array_equal(same.perturbed, found.perturbed)
    assert all(weight.grad is None for weight in net.parameters())


def test_rows_are_read_like_the_weights():
    for dtype in (torch.float32, torch.float64):
        net = nn.Linear(2, 3).to(dtype)
        for rows in ([[1, 2]], np.array([[1.0, 2.0]]), torch.tensor([[1.0, 2.0]], dtype=torch.float16)):
            x = rows_for(net, rows)
            assert x.dtype == dtype
            assert x.tolist() == [[1.0, 2.0]]
    assert rows_for(torch.sin, np.array([[1.0]])).dtype == torch.float64
    assert rows_for(torch.sin, [[1]]).dtype == torch.float32
    for rows in ([1.0, 2.0], np.empty((0, 2)), [[np.nan, 1.0]]):
        with pytest.raises(DataError, match=r"X must have rows \(n, …\) of finite numbers; found shape"):
            rows_for(nn.Linear(2, 3), rows)


def test_a_module_that_evaluates_is_asked_itself():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).eval()
    assert evaluating(net) is net
    assert evaluating(torch.sin) is torch.sin
    copied = evaluating(net.train())
    assert copied is not net
    assert net.training
    assert not any(part.training for part in copied.modules())


def test_labels_of_a_function_are_places_of_its_classes():
    x = torch.eye(3)
    for labels in ([0.0, 1.0, 2.0], [0, 1], [[0], [1], [2]]):
        with pytest.raises(DataError, match="3 integers are needed: classes"):
            attack(lambda rows: rows, x, labels, FGSM(0.1))
    with pytest.raises(SpecError, match=r"of 2 classes or more; it gave \(1, 1\)"):
        attack(lambda rows: rows[:, :1], x, None, FGSM(0.1))
