"""The observed information of a linear model is the Hessian of its log-likelihood, whatever the likelihood."""

import pytest
import torch

from likely import Regressor
from likely.inference import Conditional, Problem
from likely.inference.linear.design import Design
from likely.inference.linear.information import information, pseudo_inverse
from likely.likelihoods import Gamma, NegativeBinomial, Normal, StudentT
from likely.priors import Flat


@pytest.mark.filterwarnings("ignore:Newton stopped after")  # where few rows say that ν is infinite
@pytest.mark.parametrize(
    "likelihood", [Normal("input"), Gamma(), NegativeBinomial(), StudentT(df="learned")], ids=lambda spec: repr(spec)
)
def test_it_is_the_hessian_of_the_log_likelihood(likelihood, seed):
    """At whatever parameters the fit has ended."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(40, 2, generator=generator, dtype=torch.float64)
    y = (4 * torch.randn(40, generator=generator, dtype=torch.float64).exp()).ceil()  # far ones, so that ν is finite
    weight = torch.rand(40, generator=generator, dtype=torch.float64)
    model = Regressor(likelihood).fit(x.numpy(), y.numpy(), weight.numpy())
    module = model.posterior_.module_of(0)
    data = model._encode(likelihood, x, y, weight, torch.float64, "cpu")
    problem = Problem(lambda _: module, Conditional(likelihood), Flat(), data, seed=0)
    part = information(Design(problem, module, module.linear).regression(0), likelihood)
    own, shared = module.linear.out_features, 0 if module.shared is None else module.shared.numel()

    def log_likelihood(theta):
        coefficients = theta[: 3 * own].view(own, 3)
        eta = x @ coefficients[:, :2].T + coefficients[:, 2]
        if shared:
            eta = torch.cat([eta, theta[3 * own :].expand(len(x), -1)], -1)
        return (weight * likelihood.log_prob(eta, y)).sum()

    rows = torch.cat([module.linear.weight, module.linear.bias.unsqueeze(-1)], 1).flatten().detach()
    theta = rows if not shared else torch.cat([rows, module.shared.flatten().detach()])
    expected = -torch.autograd.functional.hessian(log_likelihood, theta)
    torch.testing.assert_close(part.matrix, expected, rtol=1e-8, atol=1e-8 * float(expected.abs().max()))
    assert part.log_likelihood == pytest.approx(float(log_likelihood(theta)), rel=1e-10)


def test_a_pseudo_inverse_ignores_what_is_not_determined():
    root = torch.tensor([[1.0, 2.0], [2e6, 1e6], [3.0, 3.0]], dtype=torch.float64)  # rank 2, very different units
    inverse, null = pseudo_inverse(root @ root.T)
    assert null.shape == (3, 1)
    matrix = root @ root.T
    torch.testing.assert_close(matrix @ inverse @ matrix, matrix, rtol=1e-6, atol=1e-6 * float(matrix.abs().max()))
