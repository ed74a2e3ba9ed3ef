"""What holds for every method that follows gradients: moments, invariance, calibration, and what bad densities get."""

import math
import sys
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest, norm
from torch.distributions import Beta, Binomial, Normal, constraints

from likely.core.errors import ConvergenceWarning, DataError
from likely.sampling import HMC, NUTS, Chains, Langevin, sample
from likely.sampling.gradient import first_value_and_gradient, value_and_gradient

METHODS = [HMC(), NUTS(), Langevin()]


def correlated(size):
    """A normal density with mean 1 … d and correlations all over, its mean and its covariance."""
    root = torch.randn(size, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    covariance = root @ root.T / size + 0.1 * torch.eye(size, dtype=torch.float64)
    mean, precision = torch.arange(1.0, size + 1, dtype=torch.float64), torch.linalg.inv(covariance)
    return lambda x: -0.5 * (((x - mean) @ precision) * (x - mean)).sum(1), mean, covariance


def scores(chains, facts, expected):
    """How many standard errors the averages of `facts` (chains, draws, k) are from what they should be."""
    averaged = Chains(facts, chains.log_prob, chains.acceptance)
    return (averaged.mean - expected).abs() / (averaged.std / averaged.ess.sqrt())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 30])
def test_mean_and_covariance_of_a_normal(method, size, seed):
    """Every mean, variance and neighbouring product within 5 of its standard errors: false alarm below 6e-5 in all.

    Single steps tell warm-up less of many coordinates than trajectories do, so they get more of them.
    """
    log_prob, mean, covariance = correlated(size)
    count, warmup = (500, 800) if isinstance(method, Langevin) else (75, 200)
    chains = sample(log_prob, mean, method, draws=count, warmup=warmup, chains=64, random_state=seed)
    centred = chains.draws - mean
    assert float(scores(chains, chains.draws, mean).max()) < 5
    assert float(scores(chains, centred.square(), covariance.diagonal()).max()) < 5
    if size > 1:
        products = centred[..., 1:] * centred[..., :-1]
        assert float(scores(chains, products, covariance.diagonal(1)).max()) < 5


# --- invariance ---------------------------------------------------------------------------------------------------
def bent(x):
    """x₀ ~ Normal(0, 1), x₁ ~ Normal(x₀²/2, ½)."""
    return -0.5 * x[:, 0].square() - 0.5 * ((x[:, 1] - 0.5 * x[:, 0].square()) / 0.5).square()


def moved(method, moves, seed):
    """p-values of both coordinates, and how far from uncorrelated they are, after moves from 20,000 exact draws."""
    noise = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    start = torch.stack([noise[:, 0], 0.5 * noise[:, 0].square() + 0.5 * noise[:, 1]], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        chains = sample(bent, start, method, draws=moves, warmup=0, random_state=seed)
    x = chains.draws[:, -1]
    assert not torch.equal(x, start)
    one, two = x[:, 0].numpy(), ((x[:, 1] - 0.5 * x[:, 0].square()) / 0.5).numpy()
    products = [one * two, (one**2 - 1) * two, one * (two**2 - 1), (one**2 - 1) * (two**2 - 1)]
    errors = [abs(p.mean()) / (p.std() / math.sqrt(len(p))) for p in products]
    return kstest(one, norm.cdf).pvalue, kstest(two, norm.cdf).pvalue, max(errors)


@pytest.mark.parametrize(
    "method",
    [
        HMC(step_size=0.4, trajectory=2.0),
        NUTS(step_size=0.4),
        NUTS(step_size=0.9, max_depth=3),
        Langevin(step_size=0.7),
    ],
)
def test_exact_draws_stay_exact(method, seed):
    """Steps so large that many moves are refused; a right sampler fails with probability 4e-4."""
    first, second, error = moved(method, 3, seed)
    assert min(first, second) > 1e-4
    assert error < 4


def test_invariance_finds_out_a_chain_that_is_not(seed):
    first, second, _ = moved(Langevin(step_size=0.7, adjusted=False), 3, seed)
    assert min(first, second) < 1e-8


# --- simulation-based calibration ---------------------------------------------------------------------------------
POSTERIORS, DRAWS = 800, 19


def normal_normal(generator):
    """θ ~ Normal(1, 2), five y ~ Normal(θ, 1)."""
    theta = 1 + 2 * torch.randn(POSTERIORS, 1, generator=generator, dtype=torch.float64)
    y = theta + torch.randn(POSTERIORS, 5, generator=generator, dtype=torch.float64)

    def log_prob(x):
        return Normal(1.0, 2.0).log_prob(x[:, 0]) + Normal(x, 1.0).log_prob(y).sum(-1)

    return theta, torch.ones(POSTERIORS, 1), log_prob, None


def beta_binomial(generator):
    """θ ~ Beta(2, 3), y ~ Binomial(10, θ), on the unit interval."""
    torch.manual_seed(generator.initial_seed())
    theta = Beta(torch.tensor([2.0], dtype=torch.float64), 3.0).sample((POSTERIORS,))
    y = Binomial(10, theta[:, 0]).sample()

    def log_prob(x):
        return (1 + y) * x[:, 0].log() + (2 + 10 - y) * torch.log1p(-x[:, 0])

    return theta, torch.full((POSTERIORS, 1), 0.5), log_prob, constraints.unit_interval


def hierarchical(generator):
    """μ ~ Normal(0, 1), σ ~ LogNormal(0, ½), four θ = μ + σz with z ~ Normal(0, 1), four y ~ Normal(θ, 1)."""
    free = torch.randn(POSTERIORS, 6, generator=generator, dtype=torch.float64)
    truth = torch.cat([free[:, :1], (0.5 * free[:, 1:2]).exp(), free[:, 2:]], 1)
    noise = torch.randn(POSTERIORS, 4, generator=generator, dtype=torch.float64)
    y = truth[:, :1] + truth[:, 1:2] * truth[:, 2:] + noise

    def log_prob(x):
        mean, scale, z = x[:, :1], x[:, 1:2], x[:, 2:]
        prior = Normal(0.0, 1.0).log_prob(mean) + Normal(0.0, 0.5).log_prob(scale.log()) - scale.log()
        return (prior + Normal(0.0, 1.0).log_prob(z) + Normal(mean + scale * z, 1.0).log_prob(y)).sum(1) - 3 * prior[
            :, 0
        ]

    start = torch.ones(POSTERIORS, 6)
    return truth, start, log_prob, [constraints.real, constraints.positive, (constraints.real, 4)]


@pytest.mark.parametrize("model", [normal_normal, beta_binomial, hierarchical])
@pytest.mark.parametrize("method", METHODS)
def test_ranks_are_uniform(method, model, seed):
    """All posteriors are chains of one run; a right sampler fails with probability 1e-4 for each unknown."""
    truth, start, log_prob, support = model(torch.Generator().manual_seed(seed + 7))
    thin = 12 if isinstance(method, Langevin) else 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # each chain has its own target
        chains = sample(log_prob, start, method, draws=DRAWS * thin, warmup=100, random_state=seed, support=support)
    ranks = (chains.draws[:, ::thin] < truth[:, None]).sum(1).numpy()
    for rank in ranks.T[:3]:  # of the four z, which are alike, one
        assert chisquare(np.bincount(rank, minlength=DRAWS + 1)).pvalue > 1e-4


# --- one program, the same bits -----------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [*METHODS, Langevin(adjusted=False)])
def test_the_same_seed_gives_the_same_bits_and_no_global_change(method):
    log_prob, mean, _ = correlated(3)
    before = torch.get_rng_state()
    first, second, other = (sample(log_prob, mean, method, 20, 60, chains=1, random_state=seed) for seed in (1, 1, 2))
    assert torch.equal(first.draws, second.draws)
    assert torch.equal(first.log_prob, second.log_prob)
    assert not torch.equal(first.draws, other.draws)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
@pytest.mark.parametrize("method", METHODS)
def test_a_thousand_chains_are_one_program(method):
    """Calls do not grow with chains, but for the longest tree among them."""

    def calls(chains):
        count = 0

        def log_prob(x):
            nonlocal count
            count += 1
            assert x.shape == (chains, 3)
            return -0.5 * x.square().sum(-1)

        sample(log_prob, torch.zeros(chains, 3), method, 20, 50, random_state=0)
        return count

    assert calls(1000) <= 2 * calls(50)


@pytest.mark.parametrize("method", METHODS)
def test_positions_of_any_shape(method, seed, chances):
    """A matrix is as good as a vector, and so is a number: a false alarm of six squares in 6 of 10⁶ seeds."""
    chains = sample(
        lambda x: -0.5 * x.square().sum((1, 2)), torch.zeros(2, 3).expand(16, 2, 3), method, 200, 200, random_state=seed
    )
    assert chains.draws.shape == (16, 200, 2, 3)
    assert chances(chains.draws.square(), torch.ones(2, 3)).min() > 1e-6
    assert sample(Normal(0.0, 1.0), 0.0, method, 200, 200, chains=8, random_state=0).draws.shape == (8, 200)


def test_a_density_that_knows_its_gradient_is_asked_for_it():
    class Known:
        def __call__(self, x):
            return -0.5 * x.square().sum(1)

        def value_and_grad(self, x):
            return self(x), -x

    known = sample(Known(), [0.0, 1.0], HMC(), 20, 20, chains=1, random_state=0)
    derived = sample(lambda x: -0.5 * x.square().sum(1), [0.0, 1.0], HMC(), 20, 20, chains=1, random_state=0)
    torch.testing.assert_close(known.draws, derived.draws)


def test_statistics_go_to_arviz_by_its_names():
    chains = sample(Normal(0.0, 1.0), 0.0, NUTS(), 200, 200, chains=8, random_state=0)
    recorded = chains.to_arviz().sample_stats
    assert {"lp", "acceptance_rate", "diverging", "energy", "n_steps", "tree_depth", "step_size"} <= set(recorded)
    # the energy at the start of a move is that of a place drawn from p, with a speed: above −log p, by χ²₁/2
    assert float((recorded["energy"].values[:, 1:] + recorded["lp"].values[:, :-1]).min()) >= 0


def test_progress_shows_acceptance_step_size_and_divergences(monkeypatch):
    shown = []

    @contextmanager
    def bar(title, total, show):
        yield lambda done, **numbers: shown.append((done, numbers))

    monkeypatch.setattr(sys.modules["likely.sampling.driver"], "progress", bar)
    sample(Normal(0.0, 1.0), 0.0, HMC(), 100, 50, chains=8, random_state=0, verbose=True)
    assert [done for done, _ in shown] == list(range(1, 151))
    assert set(shown[-1][1]) == {"acceptance", "step_size", "divergences"}
    sample(Normal(0.0, 1.0), 0.0, draws=400, warmup=200, random_state=0, verbose=True)
    assert set(shown[-1][1]) == {"acceptance"}


# --- densities that will not do -----------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("log_prob", "message"),
    [
        (
            lambda x: torch.from_numpy(norm.logpdf(x.numpy()).sum(1)),
            "log_prob has no gradient: .*Use torch instead of n",
        ),
        (lambda x: torch.from_numpy(norm.logpdf(x.detach().numpy()).sum(1)), "log_prob has no gradient"),
        (lambda x: x[:, 0] * math.nan, r"log_prob is nan at \[1, 2\] \(row 0\)"),
        (lambda x: x[:, 0] * math.inf, r"log_prob is inf at \[1, 2\] \(row 0\); a log-density is finite"),
        (lambda x: x[:, 0] - math.inf, "log_prob is −inf where chain 0 starts"),
        (
            lambda x: (x[:, 0] - 1).sqrt(),
            r"its gradient is not finite where chain 0 starts, at \[1, 2\]; start elsewhere",
        ),
    ],
)
def test_densities_that_will_not_do_are_refused(method, log_prob, message):
    with pytest.raises(DataError, match=message):
        sample(log_prob, [1.0, 2.0], method, random_state=0)


@pytest.mark.parametrize("method", METHODS)
def test_whole_numbers_are_refused(method):
    with pytest.raises(DataError, match="needs positions that are real numbers; for integers use Gibbs"):
        sample(lambda x: -x.double().square(), 1, method)


@pytest.mark.parametrize("method", [HMC(), NUTS(max_depth=4), Langevin()])
def test_an_improper_density_is_said_by_chains_that_disagree(method):
    with pytest.warns(ConvergenceWarning, match="The chains do not agree: R-hat"):
        chains = sample(lambda x: 0.0 * x.sum(1), [0.0, 0.0], method, draws=100, warmup=100, random_state=0)
    assert bool(chains.draws.isfinite().all())


@pytest.mark.parametrize(
    "method", [HMC(step_size=0.9, trajectory=3.0), NUTS(step_size=0.9, max_depth=3), Langevin(step_size=0.9)]
)
def test_a_nan_on_the_way_is_a_divergence_and_not_an_error(method, seed, chances):
    """A flat density on (−1, 1) that is NaN outside: refused there, and exact inside, where 32 chains have a false
    alarm in 1 of 10⁶ seeds.
    """

    def log_prob(x):
        return torch.where(x[:, 0].abs() < 1, 0.0 * x[:, 0], math.nan)

    told = pytest.warns(
        ConvergenceWarning, match=r"% of the draws come from trajectories that diverged: .*acceptance=0.95"
    )
    with nullcontext() if isinstance(method, Langevin) else told:  # a single step that is refused is no trajectory
        chains = sample(log_prob, [0.0], method, draws=200, warmup=0, chains=32, random_state=seed)
    assert float(chains.draws.abs().max()) < 1
    assert chances(chains.draws.square(), 1 / 3).min() > 1e-6


def test_parameters_that_a_distribution_refuses_are_no_error_on_the_way():
    """Far off, exp underflows to a scale of 0, which torch refuses; here there is no mass."""

    def log_prob(x):
        return Normal(0.0, x[:, 1].exp()).log_prob(x[:, 0]) + Normal(0.0, 3.0).log_prob(x[:, 1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        chains = sample(log_prob, [0.0, 0.0], HMC(step_size=50.0, trajectory=200.0), draws=50, warmup=0, random_state=0)
    assert bool(chains.draws.isfinite().all())
    with pytest.raises(DataError, match="log_prob refused the rows that begin with"):
        sample(
            Beta(2.0, 2.0, validate_args=True).log_prob,
            0.5,
            HMC(step_size=3.0, trajectory=9.0),
            draws=50,
            warmup=0,
            random_state=0,
        )


def test_gradients_that_are_not_numbers_or_too_steep_are_no_mass():
    def log_prob(x):
        return torch.stack([x[0, 0], x[1, 0] * math.nan, x[2, 0] * 1e300, (x[3, 0] - 4).sqrt()])

    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    value, gradient = value_and_gradient(log_prob, x)
    assert value.tolist() == [1.0, -math.inf, -math.inf, -math.inf]
    assert gradient[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    with pytest.raises(DataError, match=r"not finite where chain 1 starts, at 2"):
        first_value_and_gradient(lambda x: log_prob(x[:, None]), x[:, 0])
