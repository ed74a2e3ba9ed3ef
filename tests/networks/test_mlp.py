"""The multilayer perceptron: counts, shapes, arguments, stacking, and that width buys accuracy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap

from likely.core.errors import SpecError
from likely.core.spec import Spec
from likely.networks import MLP, Network
from likely.networks.layers import ACTIVATIONS, INITS, ReferenceBatch

NORMS = (None, "batch", "layer", "weight", "virtual")
RESIDUALS = (None, "add", "zero", "dense", "preactivation")


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_it_has_a_weight_for_each_pair_of_units_and_a_bias_for_each_unit():
    net = MLP((10, 20)).build((3,), 2)
    assert count(net) == (3 * 10 + 10) + (10 * 20 + 20) + (20 * 2 + 2)
    assert count(MLP((10, 20), bias=False).build((3,), 2)) == 3 * 10 + 10 * 20 + 20 * 2


@pytest.mark.parametrize(
    ("choice", "more"),
    [
        ({"norm": "batch"}, 2 * (10 + 20)),  # a scale and a shift for each unit
        ({"norm": "layer"}, 2 * (10 + 20)),
        ({"norm": "virtual"}, 2 * (10 + 20)),
        ({"norm": "weight"}, 10 + 20),  # a length for each unit
        ({"residual": "add"}, 3 * 10 + 10 * 20),  # projections
        ({"residual": "zero"}, 3 * 10 + 10 * 20),
        ({"residual": "preactivation"}, 10 * 20),
        ({"residual": "dense"}, 3 * 20 + (3 + 10) * 2),  # wider inputs
        ({"dropout": 0.5}, 0),
    ],
)
def test_parameter_counts_of_the_variants(choice, more):
    plain = count(MLP((10, 20)).build((3,), 2))
    assert count(MLP((10, 20), **choice).build((3,), 2)) == plain + more


def test_a_plain_one_is_a_sequential_of_linear_layers_and_activations():
    net = MLP((5, 4), activation="tanh").build((3,), 2)
    assert type(net) is nn.Sequential
    assert [type(layer) for layer in net] == [nn.Linear, nn.Tanh, nn.Linear, nn.Tanh, nn.Linear]


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("norm", NORMS)
def test_without_hidden_layers_it_is_linear(norm, residual):
    assert type(MLP((), norm=norm, residual=residual).build((3,), 2)) is nn.Linear


@pytest.mark.parametrize(("norm", "residual"), list(itertools.product(NORMS, RESIDUALS)))
def test_positions_are_rows(norm, residual):
    net = MLP((6, 6, 4), norm=norm, residual=residual).build((5, 3), 2).eval()
    x = torch.randn(7, 5, 3)
    assert net(x).shape == (7, 5, 2)
    torch.testing.assert_close(net(x).reshape(35, 2), net(x.reshape(35, 3)))
    assert net(torch.empty(0, 5, 3)).shape == (0, 5, 2)


@pytest.mark.parametrize(("norm", "residual"), list(itertools.product(NORMS, RESIDUALS)))
def test_stacked_members_train_as_each_by_itself(norm, residual, same_stacked):
    """Outputs, gradients and buffers of a vmapped ensemble are those of its members, over two training steps."""
    same_stacked(MLP((6, 6, 4), norm=norm, residual=residual), (4, 3), rows=8, passes=2)


def test_stacked_members_drop_different_units():
    spec = MLP((512,), activation="identity", dropout=0.5)
    net = spec.build((3,), 1)
    same = {name: torch.stack([value] * 4) for name, value in net.named_parameters()}
    run = vmap(lambda p, x: functional_call(net, p, (x,)), in_dims=(0, None), randomness="different")
    outputs = run(same, torch.ones(1, 3)).flatten()
    assert len(set(outputs.tolist())) == 4


@pytest.mark.parametrize("norm", NORMS)
def test_a_training_batch_of_one_row_gives_finite_numbers(norm):
    net = MLP((6, 6), norm=norm).build((3,), 1)
    assert net(torch.randn(1, 3)).isfinite().all()


def test_dropout_has_the_inference_pass_as_its_mean_in_a_linear_network(seed):
    """The mean of 20 000 passes is within 5 of its standard errors (false alarm below 1 in 10⁶)."""
    torch.manual_seed(seed)
    net = MLP((32, 16), activation="identity", dropout=0.3).build((4,), 1)
    x = torch.randn(1, 4)
    draws = net(x.expand(20_000, 4))
    error = draws.std() / 20_000**0.5
    assert abs(draws.mean() - net.eval()(x)) < 5 * error


def test_dropout_drops_with_probability_p_and_scales_the_rest(seed):
    """The fraction dropped of 10⁵ is within 5 standard errors of p, but for 1 of 10⁶ seeds."""
    torch.manual_seed(seed)
    layer = MLP((100_000,), activation="identity", dropout=0.2, bias=False).build((1,), 1)[:3]
    ratio = (layer(torch.ones(1, 1)) / layer[:2](torch.ones(1, 1))).flatten()
    dropped = ratio == 0
    assert abs(dropped.double().mean() - 0.2) < 5 * (0.2 * 0.8 / 100_000) ** 0.5
    torch.testing.assert_close(ratio[~dropped], torch.full_like(ratio[~dropped], 1 / 0.8))


@pytest.mark.parametrize(("activation", "init"), list(itertools.product(ACTIVATIONS, INITS)))
def test_outputs_start_at_order_one(activation, init):
    net = MLP((64, 64), activation=activation, init=init).build((8,), 16)
    assert 1e-3 < net(torch.randn(256, 8)).std() < 2


@pytest.mark.parametrize("residual", RESIDUALS)
def test_outputs_of_deep_networks_with_skips_do_not_explode(residual):
    net = MLP((64,) * 16, residual=residual).build((8,), 16)
    assert 0.05 < net(torch.randn(256, 8)).std() < 10


def test_error_falls_with_width():
    """One hidden layer fits sin(3x) on a line better the wider it is, and well when wide.

    One unit is 0.60 off at least. Of 40 seeds four units were 0.17 off at most, and 32 were 0.012.
    """
    x = torch.linspace(-2, 2, 128).unsqueeze(1)
    y = torch.sin(3 * x)

    def rms(width: int) -> float:
        torch.manual_seed(1)
        net = MLP((width,), activation="tanh").build((1,), 1)
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=150, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        return (net(x) - y).square().mean().sqrt().item()

    assert rms(1) > 0.5
    assert rms(4) < 0.4
    assert rms(32) < 0.03


def test_random_features_of_a_wide_layer_fit_any_smooth_function():
    """The hidden units span more functions the more there are: the least-squares error falls with each doubling."""
    x = torch.linspace(-2, 2, 200).unsqueeze(1)
    y = (torch.sin(3 * x) + x.abs()).numpy()
    wide = MLP((256,)).build((1,), 1)
    features = wide[:2](x).detach().numpy()
    errors = []
    for width in (4, 16, 64, 256):
        design = np.column_stack([features[:, :width], np.ones(len(x))])
        errors.append(np.square(design @ np.linalg.lstsq(design, y, rcond=None)[0] - y).mean() ** 0.5)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1 * errors[0]


def test_the_reference_batch_is_the_first_of_training():
    net = MLP((6,), norm="virtual").build((3,), 1)
    assert isinstance(net, ReferenceBatch)
    first = torch.randn(64, 3)
    net(first)
    net(torch.randn(80, 3))
    torch.testing.assert_close(net.reference, first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden": 64}, r"MLP\(hidden=64\): hidden must be a tuple of positive integers"),
        ({"hidden": (64, 0)}, "hidden must be a tuple of positive integers"),
        ({"hidden": (64, 2.5)}, "hidden must be a tuple of positive integers"),
        ({"hidden": (True,)}, "hidden must be a tuple of positive integers"),
        ({"activation": "rleu"}, "activation must be one of identity, sigmoid, tanh, relu, leaky_relu"),
        ({"activation": None}, "activation must be one of"),
        ({"init": "xavier"}, "init must be one of lecun, glorot, he, he_average, orthogonal"),
        ({"dropout": 1.0}, "dropout must be a probability, 0 or more and below 1"),
        ({"dropout": "half"}, "dropout must be a probability"),
        ({"norm": "group"}, "norm must be None or one of batch, layer, weight, virtual"),
        ({"residual": "skip"}, "residual must be None or one of add, zero, dense, preactivation"),
        ({"bias": 1}, "bias must be True or False"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        MLP(**arguments)


@pytest.mark.parametrize("residual", RESIDUALS)
def test_absurd_sizes_are_refused_before_memory_is_asked_for(residual):
    with pytest.raises(SpecError, match=r"MLP.* would have 1[\d,]+ weights; .* 100,000,000 or fewer"):
        MLP((10**6, 10**6), residual=residual).build((3,), 1)


def test_inputs_and_outputs_must_exist():
    with pytest.raises(SpecError, match="needs one input and one output or more"):
        MLP().build((), 1)
    with pytest.raises(SpecError, match="needs one input and one output or more"):
        MLP().build((0,), 1)


def test_text_and_json_round_trip():
    spec = MLP((8, 4), activation="gelu", dropout=0.1, norm="layer", residual="add")
    assert Network.parse('mlp(hidden=[8, 4], activation="gelu", dropout=0.1, norm="layer", residual="add")') == spec
    assert Spec.from_json(spec.to_json()) == spec
    assert Network.parse(repr(spec)) == spec
