"""Ancestral sampling. 5 standard errors are passed in one of 10⁶ runs; a p-value is below 1e-4 in one of 10⁴."""

import pytest
import torch
from scipy.stats import kstest
from torch.distributions import Bernoulli, Categorical, MultivariateNormal, Normal

from likely.core.errors import DataError
from likely.sampling import ancestral

N = 20_000


def sprinkler():
    return {
        "wet": lambda rain, sprinkler: Bernoulli(0.01 + 0.89 * torch.maximum(rain, sprinkler)),
        "sprinkler": lambda rain: Bernoulli(torch.where(rain > 0, 0.05, 0.4)),
        "rain": Bernoulli(0.2),
    }


def test_joint_probabilities_are_the_products_of_the_conditionals(seed):
    """All eight cells of the joint, each within five standard errors."""
    draws = ancestral(sprinkler(), N, random_state=seed)
    assert list(draws) == ["wet", "sprinkler", "rain"]
    for rain in (0, 1):
        for on in (0, 1):
            for wet in (0, 1):
                chance = (0.2 if rain else 0.8) * abs((0.05 if rain else 0.4) - (1 - on))
                chance *= abs(0.01 + 0.89 * max(rain, on) - (1 - wet))
                here = (draws["rain"] == rain) & (draws["sprinkler"] == on) & (draws["wet"] == wet)
                assert abs(float(here.double().mean()) - chance) < 5 * (chance * (1 - chance) / N) ** 0.5 + 1e-12


def test_a_chain_of_normals_has_its_closed_form_marginal(seed):
    """x₃ = x₁ + noise + noise: variance 1 + 4 + 9."""
    steps = {"a": Normal(1.0, 1.0), "b": lambda a: Normal(a, 2.0), "c": lambda b: Normal(b, 3.0)}
    draws = ancestral(steps, 5000, random_state=seed)
    assert kstest(draws["c"].numpy(), "norm", (1.0, 14**0.5)).pvalue > 1e-4


def test_variables_may_be_vectors():
    means = torch.tensor([[0.0, 0.0], [20.0, -20.0]])  # 10 standard deviations from the middle
    draws = ancestral(
        {"z": Categorical(torch.tensor([0.5, 0.5])), "x": lambda z: MultivariateNormal(means[z], torch.eye(2))},
        100,
        random_state=0,
    )
    assert draws["x"].shape == (100, 2)
    assert torch.equal(draws["x"][:, 0] > 10, draws["z"] == 1)


def test_the_same_seed_gives_the_same_bits_and_no_global_change():
    before = torch.get_rng_state()
    first, second = (ancestral(sprinkler(), 50, random_state=2) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_root_may_be_a_function_without_parents():
    assert ancestral({"a": lambda: Normal(0.0, 1.0)}, 7, random_state=0)["a"].shape == (7,)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"a": lambda b: Normal(b, 1.0), "b": lambda a: Normal(a, 1.0)}, "model has a cycle: .* → .* → "),
        ({"a": lambda rain: Normal(rain, 1.0)}, r"model\['a'\] has the parent 'rain', which is not a variable"),
        ({"a": 3.0}, r"model\['a'\] must be a torch distribution or a function of its parents; found 3.0"),
        ({"a": lambda *parents: Normal(0.0, 1.0)}, r"model\['a'\] takes 'parents' without a name"),
        ({"a": Normal(0.0, 1.0), "b": lambda a: a}, r"model\['b'\] must give a torch distribution; it gave Tensor"),
        (
            {"a": Normal(0.0, 1.0), "b": lambda a: Normal(a.mean(), 1.0)},
            r"model\['b'\] gave a distribution of batch shape \(\); it must begin with the 5 draws",
        ),
    ],
)
def test_models_that_cannot_be_drawn_from_are_refused(model, message):
    with pytest.raises(DataError, match=message):
        ancestral(model, 5)
