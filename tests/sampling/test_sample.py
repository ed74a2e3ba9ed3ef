import math
from functools import partial

import numpy as np
import pytest
import torch
from torch.distributions import Exponential, Gamma, Independent, MultivariateNormal, Normal, Uniform

from likely.core.errors import ConvergenceWarning, DataError, SpecError
from likely.core.spec import registered
from likely.sampling import Chains, Gibbs, Info, MetropolisHastings, Sampler, State, sample
from likely.sampling.chains import arviz

PLANE = MultivariateNormal(torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))


@pytest.mark.parametrize("method", [MetropolisHastings(), Gibbs()])
def test_the_same_seed_gives_the_same_bits_and_no_global_change(method):
    before = torch.get_rng_state()
    first, second, other = (sample(PLANE, PLANE, method, 50, 50, chains=1, random_state=seed) for seed in (1, 1, 2))
    assert torch.equal(first.draws, second.draws)
    assert torch.equal(first.log_prob, second.log_prob)
    assert not torch.equal(first.draws, other.draws)
    assert torch.equal(torch.get_rng_state(), before)


def test_user_distributions_draw_from_the_seed_as_well():
    method = Gibbs(conditionals=[lambda x: Normal(torch.zeros(len(x)), 1.0)] * 2)
    first, second = (sample(PLANE, [0.0, 0.0], method, 50, 0, random_state=1) for _ in range(2))
    assert torch.equal(first.draws, second.draws)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
@pytest.mark.parametrize("method", [MetropolisHastings(), Gibbs()])
def test_chains_are_one_tensor_axis(method):
    """The log-density is asked about all chains at once: its calls do not grow with their number."""

    def calls(chains):
        count = 0

        def log_prob(x):
            nonlocal count
            count += 1
            assert x.shape == (chains, 3)
            return -0.5 * x.square().sum(-1)

        sample(log_prob, Independent(Normal(torch.zeros(3), 1.0), 1), method, 20, 20, chains=chains, random_state=0)
        return count

    few, many = calls(100), calls(400)
    assert many <= (few if isinstance(method, MetropolisHastings) else 2 * few)


@pytest.mark.parametrize("method", [MetropolisHastings(), Gibbs()])
def test_each_chain_may_have_its_own_density(method):
    """Row c is chain c, always: so a thousand posteriors are one run."""
    centre = torch.linspace(-5, 5, 1000, dtype=torch.float64)
    with pytest.warns(ConvergenceWarning, match="R-hat"):  # they disagree by design
        chains = sample(
            lambda x: -0.5 * (x[:, 0] - centre).square(), centre[:, None], method, draws=100, warmup=100, random_state=0
        )
    gap = chains.draws[:, :, 0].mean(1) - centre
    assert float(gap.mean().abs()) < 0.05
    assert float(gap.abs().max()) < 2.5


def test_starts_are_a_point_rows_or_a_distribution():
    """Draws are independent, so that R-hat of a few is above 1.05 in one of 10⁸ runs."""

    def conditional(x):
        return Normal(torch.zeros(len(x)), 1.0)

    line = partial(sample, Normal(0.0, 1.0), method=Gibbs(conditionals=[conditional]), warmup=1, random_state=0)
    plane = partial(sample, PLANE, method=Gibbs(conditionals=[conditional] * 2), warmup=1, random_state=0)
    assert line(0.0, draws=200).draws.shape == (4, 200)
    assert line(0.5, draws=300, chains=2).draws.shape == (2, 300)
    assert plane(np.zeros(2, dtype=np.float32), draws=200).draws.shape == (4, 200, 2)
    assert plane(torch.zeros(6, 2), draws=200).draws.shape == (6, 200, 2)
    assert plane(PLANE, draws=200, chains=7).draws.shape == (7, 200, 2)
    assert plane(torch.zeros(2), draws=200).draws.dtype == torch.float64


def test_no_warm_up_is_fine():
    chains = sample(Normal(0.0, 1.0), 0.0, MetropolisHastings(step_size=2.4), draws=500, warmup=0, random_state=0)
    assert chains.draws.shape == (4, 500)


def test_diagnostics_are_arviz_and_its_data_hold_everything():
    chains = sample(PLANE, PLANE, draws=500, chains=3, random_state=0, names=["a", "b"])
    data = chains.to_arviz()
    np.testing.assert_array_equal(data.posterior["b"].values, chains.draws[..., 1].numpy())
    np.testing.assert_array_equal(data.sample_stats["lp"].values, chains.log_prob.numpy())
    assert data.sample_stats["acceptance_rate"].shape == (3, 500)
    table = chains.summary(round_to="none")
    assert list(table.index) == ["a", "b"]
    np.testing.assert_allclose(table["mean"], chains.mean.numpy(), rtol=1e-9)
    np.testing.assert_allclose(table["r_hat"], chains.rhat.numpy(), rtol=1e-9)
    np.testing.assert_allclose(table["ess_bulk"], chains.ess.numpy(), rtol=1e-9)
    rhat = arviz().rhat(chains.draws[..., 0].numpy())
    assert float(chains.rhat[0]) == pytest.approx(float(rhat), rel=1e-9)
    torch.testing.assert_close(chains.log_prob, PLANE.log_prob(chains.draws))
    assert repr(chains).startswith("Chains(3 chains × 500 draws of (2,), acceptance 0.")


def test_one_chain_has_no_r_hat():
    chain = sample(Normal(0.0, 1.0), 0.0, draws=200, chains=1, random_state=0)
    assert math.isnan(float(chain.rhat))
    assert float(chain.ess) > 10
    short = Chains(chain.draws[:, :3], chain.log_prob[:, :3], chain.acceptance)
    assert math.isnan(float(short.ess))


def test_chains_that_disagree_are_said_with_what_to_try():
    def far_apart(x):
        return torch.logaddexp(-0.5 * (x[:, 0] - 50) ** 2, -0.5 * (x[:, 0] + 50) ** 2)

    starts = torch.tensor([[-50.0], [50.0], [-50.0], [50.0]])
    with pytest.warns(
        ConvergenceWarning, match=r"The chains do not agree: R-hat of x\[0\] is .*, above 1.05. Use more draws"
    ):
        sample(far_apart, starts, MetropolisHastings(step_size=1.0), draws=200, random_state=0)


def test_chains_that_stand_still_are_said():
    with pytest.warns(ConvergenceWarning, match="were accepted: the chains stand still. Warm up for longer"):
        sample(Normal(0.0, 1e-6), 0.0, MetropolisHastings(step_size=1000.0), draws=50, warmup=0, random_state=0)


def test_methods_are_read_from_text_and_by_any_file_that_defines_one():
    class Jump(Sampler):
        """Exact draws of a standard normal, to show what a method must do."""

        def step(self, state, log_prob, generator):
            position = torch.randn(state.position.shape, generator=generator, dtype=torch.float64)
            info = Info(torch.ones(len(position)), {"size": position.abs()})
            return State(position, log_prob(position)), info

    assert "Jump" in registered("sampler")
    chains = sample(Normal(0.0, 1.0), 0.0, "jump()", draws=100, random_state=0)
    torch.testing.assert_close(chains.stats["size"], chains.draws.abs())
    assert chains.to_arviz().sample_stats["size"].shape == (4, 100)
    assert sample(Normal(0.0, 1.0), 0.0, "metropolis_hastings(step_size=2.0)", random_state=0).draws.shape == (4, 1000)
    with pytest.raises(NotImplementedError):
        Sampler().step(State(torch.zeros(1), torch.zeros(1)), lambda x: x, torch.Generator())


@pytest.mark.parametrize(
    ("log_prob", "initial", "message"),
    [
        (lambda x: x[:, 0] * math.nan, [1.0, 2.0], r"log_prob is nan at \[1, 2\] \(row 0\)"),
        (lambda x: x[:, 0] * math.inf, [1.0, 2.0], r"log_prob is inf at \[1, 2\] \(row 0\); a log-density is finite"),
        (lambda x: x, [1.0, 2.0], r"one number for each of the 4 rows, .* it gave shape \(4, 2\) for rows of shape"),
        (lambda x: x.sum(), [1.0, 2.0], r"it gave shape \(\) for rows of shape \(4, 2\)"),
        (lambda x: 3.0, [1.0, 2.0], "it gave float for rows"),
        (Exponential(1.0), -1.0, "log_prob is −inf where chain 0 starts, at -1; start where there is mass"),
        (
            Gamma(2.0, 1.0).log_prob,
            -1.0,
            "log_prob refused the rows that begin with -1; it must give −inf where there is no mass, as a torch dist",
        ),
        (
            Normal(torch.zeros(2), 1.0),
            [0.0, 0.0],
            r"log_prob is a batch of \(2,\) distributions; .*Independent\(…, 1\)",
        ),
        ("normal", 0.0, "log_prob must be a function of rows .* found str"),
        (PLANE, [math.nan, 0.0], r"initial must hold finite numbers; found \[nan, 0\]"),
        (PLANE, [], "initial must hold finite numbers; found none"),
        (PLANE, "a", "initial must hold numbers; found 'a'"),
        (PLANE, Normal(torch.zeros(2), 1.0), r"initial is a batch of \(2,\) distributions"),
    ],
)
def test_densities_and_starts_that_will_not_do_are_refused(log_prob, initial, message):
    with pytest.raises(DataError, match=message):
        sample(log_prob, initial, random_state=0)


def test_a_nan_on_the_way_is_an_error_with_its_place():
    with pytest.raises(DataError, match=r"log_prob is nan at \[-.*\] \(row \d\)"):
        sample(lambda x: x[:, 0].log() - x[:, 0], [1.0], random_state=0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"draws": 0}, DataError, "draws must be an integer of 1 or more; found 0"),
        ({"warmup": -1}, DataError, "warmup must be an integer of 0 or more; found -1"),
        ({"chains": 2.5}, DataError, "chains must be an integer of 1 or more; found 2.5"),
        (
            {"chains": 3, "initial": torch.zeros(4, 2)},
            DataError,
            "initial has 4 rows, one for each chain, but chains=3",
        ),
        ({"method": "walk()"}, SpecError, "Unknown sampler 'walk'"),
        ({"method": MetropolisHastings}, SpecError, r"is a class; write method=MetropolisHastings\(\)"),
        ({"names": ["a"]}, DataError, r"found 1 names for positions of shape \(2,\)"),
        ({"names": ["a", "a"]}, DataError, "a different one for each coordinate"),
        ({"random_state": "x"}, SpecError, "'x' is not a seed"),
    ],
)
def test_arguments_that_will_not_do_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        sample(**{"log_prob": PLANE, "initial": [0.0, 0.0], **arguments})


def test_outside_its_support_a_distribution_answers_minus_infinity():
    chains = sample(Uniform(0.0, 1.0), 0.5, draws=500, random_state=0)
    assert bool(((chains.draws >= 0) & (chains.draws <= 1)).all())
