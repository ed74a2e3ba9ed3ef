import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from likely.core.errors import SpecError
from likely.core.spec import Spec, registered
from likely.priors import ElasticNet, Flat, Laplace, Normal, PerLayer, Prior, Rates

PROPER = [
    Normal(0.3),
    Normal(1e-6),
    Laplace(2.0),
    Laplace(1e6),
    ElasticNet(1.0, 1.0),
    ElasticNet(0.0, 3.0),
    ElasticNet(3.0, 0.0),
    ElasticNet(50.0, 1e-3),
    ElasticNet(1e-3, 50.0),
    ElasticNet(1.0, 1e-24),
]


def _weight(*values):
    return torch.tensor([values], dtype=torch.float64)


def _log_density(prior, value):
    return float(prior.log_prob({"weight": _weight(value)}))


# --- the densities ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prior", PROPER, ids=str)
def test_the_density_of_one_weight_integrates_to_one(prior):
    l1, l2 = prior.rates("weight", _weight(0.0))
    unit = 1 / max(l1, math.sqrt(l2))
    half, _ = integrate.quad(lambda v: unit * math.exp(_log_density(prior, unit * v)), 0, 60, epsabs=1e-10)
    assert 2 * half == pytest.approx(1.0, abs=1e-6)


@given(st.floats(-5, 5), st.floats(0.1, 10))
def test_agreement_with_scipy(value, scale):
    assert _log_density(Normal(scale), value) == pytest.approx(stats.norm(0, scale).logpdf(value), abs=1e-9)
    assert _log_density(Laplace(scale), value) == pytest.approx(stats.laplace(0, scale).logpdf(value), abs=1e-9)


@given(st.floats(-5, 5), st.floats(0.1, 10))
def test_an_elastic_net_with_one_rate_is_normal_or_laplace(value, scale):
    assert _log_density(ElasticNet(0.0, scale**-2), value) == pytest.approx(
        _log_density(Normal(scale), value), abs=1e-9
    )
    assert _log_density(ElasticNet(1 / scale, 0.0), value) == pytest.approx(
        _log_density(Laplace(scale), value), abs=1e-9
    )
    nearly = ElasticNet(1 / scale, 1e-20)
    assert _log_density(nearly, value) == pytest.approx(_log_density(Laplace(scale), value), abs=1e-6)


@pytest.mark.parametrize("prior", [*PROPER, Flat()], ids=str)
def test_weights_are_independent_and_symmetric(prior):
    values = np.array([[0.5, -1.0], [2.0, 0.0]])
    together = float(prior.log_prob({"a.weight": torch.from_numpy(values), "b.weight": torch.from_numpy(-values)}))
    assert together == pytest.approx(2 * sum(_log_density(prior, v) for v in values.ravel()), rel=1e-12)


@pytest.mark.parametrize("prior", PROPER, ids=str)
def test_the_penalty_is_what_the_rates_say(prior):
    l1, l2 = prior.rates("weight", _weight(0.0))
    for value in (0.5, -2.0):
        expected = -l1 * abs(value) - l2 * value**2 / 2
        gained = _log_density(prior, value) - _log_density(prior, 0.0)
        assert gained == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("prior", PROPER, ids=str)
def test_smooth_leaves_out_the_absolute_values(prior):
    parameters = {"weight": _weight(0.5, -2.0), "bias": torch.tensor([3.0], dtype=torch.float64)}
    l1 = prior.rates("weight", parameters["weight"]).l1
    expected = float(prior.log_prob(parameters)) + l1 * 2.5
    assert float(prior.smooth(parameters)) == pytest.approx(expected, rel=1e-9)
    weight = parameters["weight"].requires_grad_()
    (slope,) = torch.autograd.grad(prior.smooth(parameters), weight)
    l2 = prior.rates("weight", weight).l2
    torch.testing.assert_close(slope, -l2 * weight.detach(), rtol=1e-9, atol=1e-12)


# --- weights and biases -----------------------------------------------------------------------------------------
BIASES = {
    "bias": torch.full((3,), 5.0),
    "0.bias": torch.full((3,), 5.0),
    "lstm.bias_ih_l0": torch.full((4, 3), 5.0),
    "norm.weight": torch.full((3,), 5.0),
    "shared": torch.full((2, 3), 5.0),
    "gain": torch.tensor(5.0),
}


@pytest.mark.parametrize("prior", [Normal(0.1), Laplace(0.1), ElasticNet(3.0, 3.0), Flat()], ids=str)
def test_biases_gains_and_shared_numbers_are_flat(prior):
    assert float(prior.log_prob(BIASES)) == 0.0
    assert all(prior.rates(name, value) == Rates(0.0, 0.0) for name, value in BIASES.items())


@pytest.mark.parametrize(
    "name", ["weight", "0.weight", "lstm.weight_ih_l0", "shared_weight", "encoder.shared", "embedding"]
)
def test_all_else_is_a_weight(name):
    value = torch.full((2, 3), 0.5)
    assert Normal(0.1).rates(name, value) == Rates(0.0, pytest.approx(100.0))
    assert float(Normal(0.1).log_prob({name: value})) == pytest.approx(stats.norm(0, 0.1).logpdf(0.5) * 6, rel=1e-5)


@pytest.mark.parametrize("outer", [Normal, Laplace, ElasticNet])
def test_biases_take_the_prior_that_is_given(outer):
    prior = outer(biases=Normal(2.0))
    for name, value in BIASES.items():
        assert prior.rates(name, value) == Rates(0.0, 0.25)
        expected = stats.norm(0, 2).logpdf(5.0) * value.numel()
        assert float(prior.log_prob({name: value})) == pytest.approx(expected, rel=1e-5)
    assert prior.rates("weight", _weight(1.0)) == outer().rates("weight", _weight(1.0))
    assert outer(biases="normal(2.0)") == prior


# --- per layer --------------------------------------------------------------------------------------------------
def test_the_first_match_wins():
    narrow, wide = Normal(0.1), Laplace(3.0)
    prior = PerLayer({"0.*": narrow, "*weight": wide}, default=ElasticNet(2.0, 2.0))
    assert [prior.of(n) for n in ("0.weight", "2.weight", "0.bias", "other")] == [narrow, wide, narrow, prior.default]
    assert PerLayer({"*weight": wide, "0.*": narrow}).of("0.weight") == wide
    assert PerLayer({}).of("weight") == Flat()
    assert PerLayer({"W*": narrow}).of("weight") == Flat()  # case counts


def test_the_sum_over_layers():
    values = {"0.weight": _weight(0.5), "2.weight": _weight(-1.0), "2.bias": torch.tensor([7.0])}
    prior = PerLayer({"0.*": Normal(0.1), "*": Laplace(3.0)})
    expected = _log_density(Normal(0.1), 0.5) + _log_density(Laplace(3.0), -1.0)
    assert float(prior.log_prob(values)) == pytest.approx(expected)
    assert float(prior.smooth(values)) == pytest.approx(expected + 1 / 3)
    assert prior.rates("0.weight", values["0.weight"]) == Normal(0.1).rates("weight", values["0.weight"])


def test_layers_are_read_from_text():
    assert PerLayer({"*": "laplace(2)"}, default="normal") == PerLayer({"*": Laplace(2)}, default=Normal())


# --- priors of one's own ----------------------------------------------------------------------------------------
class _Cauchy(Prior):
    def log_prob(self, parameters):
        return sum(-(math.pi * (1 + value.square())).log().sum() for value in parameters.values())


def test_a_prior_of_ones_own_only_needs_log_prob():
    values = {"weight": _weight(0.5, -2.0), "bias": torch.tensor([3.0], dtype=torch.float64)}
    expected = stats.cauchy.logpdf([0.5, -2.0, 3.0]).sum()
    prior = _Cauchy()
    assert prior.rates("weight", values["weight"]) is None
    assert float(prior.log_prob(values)) == pytest.approx(expected)
    assert float(prior.smooth(values)) == pytest.approx(expected)
    inside = Normal(1.0, biases=prior)
    assert inside.rates("bias", values["bias"]) is None
    alone = stats.norm.logpdf([0.5, -2.0]).sum() + stats.cauchy.logpdf(3.0)
    assert float(inside.log_prob(values)) == pytest.approx(alone)
    assert float(PerLayer({"bias": prior}, default=Normal()).smooth(values)) == pytest.approx(alone)


def test_a_prior_without_log_prob_says_so():
    class _Empty(Prior):
        pass

    with pytest.raises(NotImplementedError, match="_Empty must say its log_prob"):
        _Empty().log_prob({})


# --- the edges --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cls", registered(Prior).values(), ids=registered(Prior))
def test_a_module_without_parameters_has_probability_one(cls):
    prior = cls.example()
    assert float(prior.log_prob({})) == float(prior.smooth({})) == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("prior", [*PROPER, Flat(), PerLayer({"*": Normal()})], ids=str)
def test_the_answer_has_the_dtype_of_the_parameters(prior, dtype):
    value = prior.log_prob({"weight": torch.ones(2, 2, dtype=dtype)})
    assert (value.dtype, value.shape) == (dtype, ())
    assert torch.isfinite(value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Normal(0.0), r"Normal\(scale=0\.0\): scale must be a positive number, 1e-15 or more"),
        (lambda: Normal(-1), r"Normal\(scale=-1\): scale must be a positive number"),
        (lambda: Normal(1e-200), r"Normal\(scale=1e-200\): scale must be a positive number"),
        (lambda: Normal(math.inf), r"Normal\(scale=inf\): scale must be a positive number"),
        (lambda: Laplace(math.nan), r"Laplace\(scale=nan\): scale must be a positive number"),
        (lambda: Laplace("narrow"), r"Laplace\(scale='narrow'\): scale must be a number"),
        (lambda: ElasticNet(-1.0), r"ElasticNet\(l1=-1\.0\): l1 must be a number from 0"),
        (lambda: ElasticNet(1.0, math.inf), r"ElasticNet\(l2=inf\): l2 must be a number from 0"),
        (lambda: Normal(biases=3), r"Normal\(biases=3\): biases must be a prior spec or None"),
        (lambda: Normal(biases="nrmal"), "Unknown prior 'nrmal'. Did you mean Normal"),
        (lambda: PerLayer(3), r"PerLayer\(layers=3\): layers must be a dict from name patterns to priors"),
        (lambda: PerLayer({1: Normal()}), "layers must be a dict from name patterns to priors"),
        (lambda: PerLayer({"*": 3}), r"layers\['\*'\] must be one of the prior specs \(ElasticNet, .*found 3"),
        (lambda: PerLayer({}, default=3), "default must be one of the prior specs"),
    ],
)
def test_wrong_values_are_named(make, text):
    with pytest.raises(SpecError, match=text):
        make()


def test_priors_inside_priors_survive_json():
    prior = PerLayer({"a": Normal(2.0, biases=Laplace(3.0)), "b": ElasticNet()}, default=Laplace(biases=Flat()))
    assert Spec.from_json(prior.to_json()) == prior
    assert Prior.parse(repr(prior)) == prior
