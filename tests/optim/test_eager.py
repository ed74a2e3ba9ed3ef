import subprocess
import sys

import pytest
import torch

from likely.optim.eager import eager

KINDS = {
    "SGD": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "Adam": (torch.optim.Adam, {"lr": 0.1}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.1}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.1}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.1}),
    "LBFGS": (torch.optim.LBFGS, {"lr": 0.1, "max_iter": 2}),
}


def trained(make, options, steps=5, saved=None):
    theta = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = make([theta], **options)
    if saved is not None:
        theta.data.copy_(saved[0])
        optimizer.load_state_dict(saved[1])

    def closure():
        optimizer.zero_grad()
        loss = (theta.square() * torch.tensor([1.0, 3.0])).sum()
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return theta.detach().clone(), optimizer.state_dict()


@pytest.mark.parametrize("name", KINDS)
def test_steps_and_states_are_those_of_torch(name):
    kind, options = KINDS[name]
    ours, theirs = trained(eager(kind), options), trained(kind, options)
    assert torch.equal(ours[0], theirs[0])
    resumed = trained(eager(kind), options, 3, trained(eager(kind), options, 2))
    assert torch.equal(resumed[0], ours[0])


def test_a_first_fit_does_not_load_the_compiler():
    code = """
import sys
import numpy as np
from likely import Regressor
from likely.inference import MAP, Ensemble
from likely.networks import MLP
X = np.random.default_rng(0).normal(size=(40, 2))
for inference in (MAP(epochs=2), MAP("sgd(0.01)", epochs=2), Ensemble(2, by=MAP(epochs=2))):
    Regressor(network=MLP((4,)), inference=inference).fit(X, X[:, 0]).predict(X)
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
