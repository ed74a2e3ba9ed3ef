from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal, Normal, Poisson

from likely.probability.joint import Joint, marginals, point


@pytest.fixture
def joint(generator):
    return Joint(
        {
            "number": Normal(torch.randn(4), torch.ones(4)),
            "vector": MultivariateNormal(torch.randn(4, 2), torch.eye(2)),
            "label": Categorical(logits=torch.randn(4, 3)),
            "count": Poisson(torch.rand(4)),
        }
    )


def test_shapes_and_support(joint):
    assert (joint.batch_shape, joint.event_shape) == ((4,), (5,))
    y = joint.sample((7,))
    assert y.shape == (7, 4, 5)
    assert bool(joint.support.check(y).all())
    assert joint.log_prob(y).shape == (7, 4)
    assert joint.mean.shape == joint.variance.shape == joint.mode.shape == (4, 5)
    assert not joint.has_rsample


def test_log_prob_is_the_sum_of_the_marginals(joint):
    y = joint.sample()
    parts = zip(joint.marginals.values(), joint.columns(y), strict=True)
    torch.testing.assert_close(joint.log_prob(y), sum(part.log_prob(own) for part, own in parts))
    torch.testing.assert_close(joint.beside(joint.columns(y)), y)


def test_labels_report_their_mode_and_its_doubt(joint):
    label = joint.marginals["label"]
    torch.testing.assert_close(joint.mean[:, 3], label.probs.argmax(-1).float())
    torch.testing.assert_close(joint.variance[:, 3], 1 - label.probs.max(-1).values)
    torch.testing.assert_close(joint.mean[:, 0], joint.marginals["number"].mean)


def test_expand(joint):
    wide = joint.expand((3, 4))
    y = joint.sample()
    torch.testing.assert_close(wide.log_prob(y), joint.log_prob(y).expand(3, 4))


def test_rsample_carries_gradients():
    location = torch.zeros(2, requires_grad=True)
    joint = Joint({"a": Normal(location, 1.0), "b": Normal(location, 2.0)})
    assert joint.has_rsample
    (slope,) = torch.autograd.grad(joint.rsample().sum(), location)
    assert slope.tolist() == [2.0, 2.0]


def test_mixture_of_joints(joint):
    weights = Categorical(torch.rand(4))
    mixture = MixtureSameFamily(weights, joint)
    y = mixture.sample((3,))
    expected = torch.logsumexp(weights.logits + joint.log_prob(y.unsqueeze(-2)), -1)
    torch.testing.assert_close(mixture.log_prob(y), expected)
    best = point(mixture)
    torch.testing.assert_close(best[0], weights.probs @ joint.marginals["number"].mean)
    assert best[3] == (weights.probs @ joint.marginals["label"].probs).argmax()
    assert list(marginals(mixture)) == ["number", "vector", "label", "count"]


def test_others_have_no_marginals_by_name():
    with pytest.raises(TypeError, match="A Normal has no marginals by name"):
        marginals(Normal(0.0, 1.0))
