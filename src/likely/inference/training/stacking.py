"""Stacking: an affine map beside the networks of a mixture, with the weight that held-out rows give it.

    p(y | x) = (1 − α)/K Σₖ p(y | η(x; θₖ)) + α p(y | offset + unit (A z(x) + b)),
    α = argmax Σᵢ wᵢ log((1 − α) p₀ᵢ + α p₁ᵢ)

p₀ᵢ is what the network that did not learn from row i says of it, and p₁ᵢ what the affine map that did not says. So the
mixture follows a linear model where that is all there is to know, and costs next to nothing where it is not.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from ...core import distributed
from ...priors import Flat
from ..linear.exact import Exact
from ..posterior import Posterior
from ..predictor import Predictor
from ..problem import Problem

__all__ = ["best_share", "least_squares", "networks_of", "straight", "together"]

LEAST = 0.05
"""The weight below which an affine map is left out."""
BEHIND, AHEAD = -30.0, 500.0
"""Nats on a row by which the affine map may be behind or ahead: 1 + gain and gain are above 0 and finite still."""


def straight(problem: Problem) -> Problem:
    """The problem with an affine map of the columns in place of the network, whose prior does not speak of it."""
    module = problem.module()
    assert isinstance(module, Predictor)
    columns = problem.data.x.shape[1]
    return problem.with_(build=lambda seed: module.straight(columns), prior=Flat(), verbose=False)


def least_squares(problem: Problem, subsets: Tensor) -> tuple[Tensor, Tensor]:
    """A and b of a straight problem in closed form, for each of these subsets of the rows (members, rows)."""
    module = problem.module().double()
    assert isinstance(module, Predictor)
    assert module.offset is not None
    assert isinstance(problem.data.x, Tensor)
    x, offset = problem.data.x.double(), module.offset.flatten()
    unit = torch.ones_like(offset) if module.unit is None else module.unit.flatten()
    z = x if module.inputs is None else module.inputs.once(x)
    data = replace(problem.data.to(torch.float64), x=z)
    plain = Predictor(module.network, module.shared, positions=module.positions)  # in the units of the targets
    weights, biases = [], []
    for rows in subsets.to(x.device):
        solved = Exact().fit(problem.with_(build=lambda seed: copy.deepcopy(plain), data=data.subset(rows)))
        weights.append(solved.parameters["network.weight"][0] / unit.unsqueeze(-1))
        biases.append((solved.parameters["network.bias"][0] - offset) / unit)
    return torch.stack(weights), torch.stack(biases)


def best_share(networks: Tensor, affine: Tensor, weight: Tensor | None = None) -> float:
    """The α of the affine map, from log p₀ and log p₁ of each row: the maximum of a concave function.

    >>> round(best_share(torch.tensor([0.5, 0.1]).log(), torch.tensor([0.1, 0.5]).log()), 6)
    0.5
    """
    ahead = (affine.double() - networks.double()).nan_to_num(0.0).clamp(BEHIND, AHEAD)
    gain = ahead.expm1().cpu().numpy()
    weights = np.ones(len(gain)) if weight is None else weight.double().cpu().numpy()

    def derivative(share: float) -> float:
        return float(weights @ (gain / (1 + share * gain)))

    least, most = derivative(0.0) <= 0, derivative(1.0) >= 0
    share = float(most) if least or most else float(brentq(derivative, 0.0, 1.0))
    agreed = torch.tensor(share, dtype=torch.float64)
    distributed.broadcast_(agreed)  # every process makes the same mixture
    return float(agreed)


def together(networks: Posterior, maps: Posterior, share: float) -> Posterior:
    """The networks and the mean of the affine maps as one posterior; the networks alone if the share is small.

    Parameter vectors are of one module: that of the affine map has a network too, which is not asked.
    """
    if share < LEAST:
        return networks
    mean = {name: value.mean(0, keepdim=True) for name, value in maps.parameters.items()}
    weight, bias = mean["network.weight"], mean["network.bias"]
    module = copy.deepcopy(networks.module)
    assert isinstance(module, Predictor)
    module.with_affine(weight.shape[-1])
    own = {name: value for name, value in mean.items() if name == "shared"}
    parameters = {name: torch.cat([value, own.get(name, value[:1])]) for name, value in networks.parameters.items()}
    for name, value in (("affine.weight", weight), ("affine.bias", bias)):
        parameters[name] = torch.cat([value.new_zeros(len(networks), *value.shape[1:]), value])
    buffers = {name: torch.cat([value, value[:1]]) for name, value in networks.buffers.items()}
    buffers["is_affine"] = torch.arange(len(networks) + 1, device=weight.device) == len(networks)
    weights = torch.cat([(1 - share) * networks.weights, networks.weights.new_tensor([share])])
    return Posterior(module, parameters, buffers, weights, networks.info)


def networks_of(posterior: Posterior) -> Posterior:
    """The networks alone, where an affine map is beside them, though it had all the weight; another one as it is."""
    if "is_affine" not in posterior.buffers:
        return posterior
    kept = ~posterior.buffers["is_affine"]
    module = copy.deepcopy(posterior.module)
    assert isinstance(module, Predictor)
    plain = module.without_affine()
    parameters = {name: posterior.parameters[name][kept] for name, _ in plain.named_parameters()}
    buffers = {name: posterior.buffers[name][kept] for name, _ in plain.named_buffers()}
    weights, total = posterior.weights[kept], posterior.weights[kept].sum()
    return Posterior(plain, parameters, buffers, weights / total if total else None, posterior.info)
