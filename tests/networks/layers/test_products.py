"""Products by oneDNN are products, from whatever memory, and are asked for where they are faster."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import likely
from likely import Classifier
from likely.core.threads import threads_for
from likely.inference import MAP
from likely.networks import Transformer
from likely.networks.layers import products
from likely.networks.layers.dense import DensePasses, dense_layers


@pytest.fixture
def preferred(monkeypatch):
    """As if oneDNN were the faster one on this machine, at products of any size, if it is there at all."""
    monkeypatch.setattr(products, "_mkl_is_narrow", torch.backends.mkldnn.is_available)
    monkeypatch.setattr(products, "LARGE", 1)


@pytest.mark.parametrize("rows", [1, 33])
def test_passes_by_onednn_equal_autograd(preferred, rows, seed):
    """To rounding of float32; the rows are a part of a wider matrix."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 17, bias=False), nn.Tanh(), nn.Linear(17, 3))
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    gradients = {name: torch.empty_like(value) for name, value in parameters.items()}
    passes = DensePasses(dense_layers(network), parameters, gradients)
    x = torch.randn(rows, 30, generator=generator)[:, 4:24]
    score = torch.randn(rows, 3, generator=generator)
    out = passes.forward(x).clone()
    passes.backward(score.clone())
    expected = network(x)
    wanted = torch.autograd.grad((expected * score).sum(), list(network.parameters()))
    torch.testing.assert_close(out, expected.detach(), rtol=1e-4, atol=1e-5)
    for name, gradient in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-4 * float(gradient.abs().max() + 1))


def test_only_large_products_of_float32_are_worth_it(monkeypatch):
    monkeypatch.setattr(products, "_mkl_is_narrow", lambda: True)
    assert products.rows_for_onednn(torch.zeros(256, 784)) == products.LARGE / (256 * 784)
    others = torch.zeros(256, 784, dtype=torch.float64), torch.zeros(3, 256, 784), torch.zeros(0, 784)
    assert [products.rows_for_onednn(weight) for weight in others] == [math.inf] * 3
    monkeypatch.setattr(products, "_mkl_is_narrow", lambda: False)
    assert products.rows_for_onednn(torch.zeros(256, 784)) == math.inf


def test_without_the_operator_torch_is_asked(monkeypatch):
    """It is missing, takes other arguments, or means something else."""
    assert products._is_there() or not torch.backends.mkldnn.is_available()
    others = (
        lambda x, weight, bias: torch.ops.mkldnn._of_another_version(x, weight, bias),
        lambda x, weight, bias: torch.ops.aten.addmm(x, weight, bias, "none"),
        lambda x, weight, bias: x @ weight.mT,
    )
    for other in others:
        monkeypatch.setattr(products, "onednn_affine", other)
        assert not products._is_there()


def test_numbers_that_are_none_pass_through_and_rows_may_share_memory(preferred, seed):
    generator = torch.Generator().manual_seed(seed)
    network = nn.Linear(5, 7)
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    passes = DensePasses(dense_layers(network), parameters, {})
    x = torch.randn(6, 5, generator=generator)
    x[0, 0], x[1, 1], x[2, 2] = math.nan, math.inf, -math.inf
    for rows in (x, x[:0], x[3:4].expand(4, 5)):
        torch.testing.assert_close(passes.forward(rows), network(rows).detach(), equal_nan=True)


@pytest.fixture
def used(monkeypatch):
    """One entry for each product by oneDNN."""
    products_made, product = [], products.onednn_affine
    monkeypatch.setattr(products, "onednn_affine", lambda *given: products_made.append(1) or product(*given))
    return products_made


# --- maps of whichever module -------------------------------------------------------------------------------------
@pytest.fixture
def inside(preferred):
    """A computation whose operations are large."""
    with threads_for(products.LARGE), products.fast_products() as mode:
        yield mode


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_maps_and_their_gradients_are_those_of_torch(preferred, used, shape, bias, seed):
    """To rounding of float32, for rows, rows with positions, and what is not trained."""
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(5, 7, bias)
    for trained in (True, False):
        layer.requires_grad_(trained)
        x = torch.randn(*shape, 5, generator=generator).requires_grad_()
        score = torch.randn(*shape, 7, generator=generator)
        expected = layer(x)
        wanted = torch.autograd.grad((expected * score).sum(), [x, *layer.parameters()] if trained else [x])
        with threads_for(products.LARGE), products.fast_products():
            out = layer(x)
        assert used
        gradients = torch.autograd.grad((out * score).sum(), [x, *layer.parameters()] if trained else [x])
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(gradients, wanted, rtol=1e-4, atol=1e-5)
        assert (
            products._Affine.__name__
            in type(out.grad_fn if len(shape) == 1 else out.grad_fn.next_functions[0][0]).__name__
        )


def test_gradients_of_gradients_are_those_of_torch(preferred, seed):
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    x = torch.randn(6, 4, generator=generator).requires_grad_()

    def penalty():
        (gradient,) = torch.autograd.grad(network(x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), list(network.parameters()))

    expected = penalty()
    with threads_for(products.LARGE), products.fast_products():
        found = penalty()
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own forward mode compiles its rules
def test_what_has_rules_for_torch_alone_is_left_to_torch(inside, seed):
    """vmap, forward mode, 16 bits, double precision and vectors: the bits are those of torch."""
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(seed))
    layer = nn.Linear(5, 7).requires_grad_(False)
    weights = torch.stack([layer.weight, 2 * layer.weight])

    def answers():
        with torch.autocast("cpu", torch.bfloat16):
            half = layer(x)
        with torch.autograd.forward_ad.dual_level():
            dual = layer(torch.autograd.forward_ad.make_dual(x, x))
            tangent = torch.autograd.forward_ad.unpack_dual(dual).tangent.clone()
        return [
            torch.vmap(lambda weight: nn.functional.linear(x, weight))(weights),
            torch.func.jvp(layer, (x,), (x,))[1],
            tangent,
            half,
            layer.double()(x.double()),
            layer.float()(x[0]),
        ]

    assert isinstance(inside, products.Products)
    answered = answers()
    with torch._C.DisableTorchFunction():
        expected = answers()
    for own, other in zip(answered, expected, strict=True):
        assert torch.equal(own, other)


def test_small_computations_are_left_to_torch(preferred, monkeypatch):
    monkeypatch.setattr(products, "LARGE", 1000)
    for work, large in ((1000, True), (100, False)):
        with threads_for(work), products.fast_products() as mode:
            assert isinstance(mode, products.Products) is large
    with products.fast_products() as mode:  # nobody said how large
        assert mode is None
    monkeypatch.setattr(products, "_mkl_is_narrow", lambda: False)
    with threads_for(1000), products.fast_products() as mode:
        assert mode is None


def test_a_transformer_is_trained_and_answers_by_them(preferred, used, monkeypatch, tmp_path):
    """Nearly as by torch's products; a file keeps the bits."""
    x = np.random.default_rng(0).normal(size=(40, 6, 3)).astype(np.float32)
    model = Classifier(network=Transformer(width=8, heads=2, layers=1), inference=MAP(epochs=2), random_state=0)
    fitted = clone(model).fit(x, x[:, 0, 0] > 0)
    trained = len(used)
    probabilities = fitted.predict_proba(x)
    assert 0 < trained < len(used)
    fitted.save(tmp_path / "model.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "model.likely").predict_proba(x), probabilities)
    monkeypatch.setattr(products, "_mkl_is_narrow", lambda: False)
    used.clear()
    np.testing.assert_allclose(clone(model).fit(x, x[:, 0, 0] > 0).predict_proba(x), probabilities, atol=1e-3)
    assert not used
