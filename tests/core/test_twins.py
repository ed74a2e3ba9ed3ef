import copy
import pickle

import torch
from torch import nn

from likely.core.twins import Twins, twin


def test_a_twin_shares_tensors_and_nothing_else():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    other = twin(module)
    pairs = zip(module.state_dict(keep_vars=True).values(), other.state_dict(keep_vars=True).values(), strict=True)
    assert all(own is copied for own, copied in pairs)
    replaced = {name: torch.zeros_like(value) for name, value in module.named_parameters()}
    other.eval().load_state_dict(replaced, strict=False, assign=True)
    assert bool(module[0].weight.any())
    assert module.training


def test_as_many_are_made_as_are_used_at_once():
    twins = Twins(nn.Linear(2, 1))
    with twins.lent() as first, twins.lent() as second:
        assert first is not second
    with twins.lent() as again:
        assert again in (first, second)


def test_copies_and_pickles_take_no_twins_along():
    twins = Twins(nn.Linear(2, 1))
    with twins.lent():
        pass
    for other in (copy.deepcopy(twins), pickle.loads(pickle.dumps(twins))):
        assert other._idle == []
        assert torch.equal(other.module.weight, twins.module.weight)
