"""Games in the training engine: rounds on known games, resumed and averaged runs, and what is left of a divergence."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from likely.core.checkpoint import Checkpoint
from likely.core.errors import DivergenceError, SpecError
from likely.core.random import current_generator
from likely.inference import EMA, MAP, Ensemble, Game, Noise, Player, Problem
from likely.inference.dataset import Dataset
from likely.optim import LBFGS, SGD, Adam, Cosine, ExtraGradient, GradientDescent
from likely.priors import Flat, Normal

START = (0.6, -0.8)


class Bilinear(nn.Module):
    """min_x max_y xy, whose only solution is (0, 0)."""

    def __init__(self):
        super().__init__()
        self.x, self.y = (nn.Parameter(torch.tensor([value])) for value in START)

    def forward(self, rows, players=("x", "y"), weight=None):
        value = self.x[0] * self.y[0]
        return torch.stack([{"x": value, "y": -value}[player] for player in players])


class Shift(nn.Module):
    """A tiny GAN: faint noise moved by the generator, told from rows by a linear critic with a quadratic penalty."""

    def __init__(self, seed=0):
        super().__init__()
        self.generator = nn.Linear(2, 2)
        self.critic = nn.Sequential(nn.Linear(2, 1))
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for value in self.parameters():
                value.copy_(0.3 * torch.randn(value.shape, generator=generator))

    def forward(self, rows, players=("critic", "generator"), weight=None):
        noise = 0.1 * torch.randn(rows.shape, generator=current_generator(), dtype=rows.dtype)
        fake = self.critic(self.generator(noise)).mean()
        losses = {"generator": -fake}
        if "critic" in players:
            real = self.critic(rows)[:, 0]
            real = real.mean() if weight is None else (real * weight).sum() / weight.sum()
            losses["critic"] = fake - real + 0.5 * self.critic[0].weight.square().sum()
        return torch.stack([losses[player] for player in players])


def rows(count=40):
    return torch.from_numpy(np.random.default_rng(0).normal(loc=2.0, size=(count, 2)))


def problem(build, game, prior=None, weight=None, dtype=torch.float32):
    return Problem(build, game, prior or Flat(), Dataset(rows(), None, weight, dtype), seed=0)


def bilinear(updates="simultaneous", **arguments):
    return problem(lambda seed: Bilinear(), Game("Bilinear", ("x", "y"), updates=updates), **arguments)


def gan(updates="simultaneous", critic=None, **arguments):
    game = Game("GAN", (critic or "critic", "generator"), updates=updates)
    return problem(Shift, game, **arguments)


def ends(posterior):
    return torch.cat([value.flatten() for value in posterior.parameters.values()])


def full(optimizer, epochs, **arguments):
    return MAP(optimizer, epochs=epochs, batch_size=None, **arguments)


# --- the bilinear game ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_extra_gradient_converges_where_descent_ascent_spirals_out(rate):
    extra = ends(full(ExtraGradient(rate), 50).fit(bilinear())).norm().item()
    plain = ends(full(SGD(rate), 50).fit(bilinear())).norm().item()
    assert extra == pytest.approx(math.sqrt(1 - rate**2 + rate**4) ** 50, rel=1e-4)
    assert plain == pytest.approx(math.sqrt(1 + rate**2) ** 50, rel=1e-4)


def test_alternating_moves_answer_the_last_one():
    """x′ = x − γy, then y′ = y + γx′: area is preserved, so the path neither converges nor leaves."""
    x, y = START
    for _ in range(30):
        x = x - 0.1 * y
        y = y + 0.1 * x
    np.testing.assert_allclose(ends(full(SGD(0.1), 30).fit(bilinear("alternating"))), [x, y], rtol=1e-4)


def test_players_have_optimisers_and_steps_of_their_own():
    game = Game("Bilinear", ("x", Player("y", steps=3, optimizer=SGD(0.05))), updates="alternating")
    x, y = START
    for _ in range(4):
        y = y + 0.05 * x + 0.05 * x
        x, y = x - 0.2 * y, y + 0.05 * (x - 0.2 * y)
    posterior = full(SGD(0.2), 4).fit(problem(lambda seed: Bilinear(), game))
    np.testing.assert_allclose(ends(posterior), [x, y], rtol=1e-4)


def test_a_player_that_does_not_look_ahead_steps_from_where_it_stands():
    game = Game("Bilinear", (Player("x", optimizer=SGD(0.2)), "y"))
    x, y = START
    posterior = full(ExtraGradient(0.1), 1).fit(problem(lambda seed: Bilinear(), game))
    np.testing.assert_allclose(ends(posterior), [x - 0.2 * y, y + 0.1 * x], rtol=1e-5)


def test_a_schedule_sets_the_rates_of_all_players():
    game = Game("Bilinear", (Player("x", optimizer=SGD(0.2)), "y"))
    schedule, (x, y) = Cosine(), START
    for step in range(5):
        factor = schedule.factor(step, 5)
        x, y = x - 0.2 * factor * y, y + 0.1 * factor * x
    posterior = full(SGD(0.1), 5, schedule=schedule).fit(problem(lambda seed: Bilinear(), game))
    np.testing.assert_allclose(ends(posterior), [x, y], rtol=1e-4)


def test_a_prior_is_a_part_of_the_loss_of_its_players():
    """−log p is ½θ²/s², and the loss a mean over 40 rows."""
    x, y = START
    for _ in range(3):
        x, y = x - 0.5 * (y + x / 40 / 0.01), y - 0.5 * (-x + y / 40 / 0.01)
    prior = Normal(0.1, biases=Normal(0.1))
    np.testing.assert_allclose(ends(full(SGD(0.5), 3).fit(bilinear(prior=prior))), [x, y], rtol=1e-4)


def test_clipping_bounds_the_step_of_each_player():
    posterior = full(SGD(1.0), 1, clip_norm=0.1).fit(bilinear())
    np.testing.assert_allclose(ends(posterior), [START[0] + 0.1, START[1] + 0.1], rtol=1e-5)


# --- a small GAN ----------------------------------------------------------------------------------------------------
PLAYED = [
    (SGD(0.1), "simultaneous"),
    (SGD(0.1), "alternating"),
    (Adam(0.05, betas=(0.5, 0.9)), "alternating"),
    (ExtraGradient(0.1), "simultaneous"),
    (ExtraGradient(0.05, betas=(0.5, 0.9)), "simultaneous"),
]


@pytest.mark.parametrize(("optimizer", "updates"), PLAYED)
def test_the_generator_finds_the_mean_of_the_rows(optimizer, updates):
    """The penalty makes the field contract at the solution; errors over 12 seeds were 0.08 at most."""
    training = MAP(optimizer, epochs=150, batch_size=20, schedule=Cosine())
    generated = training.fit(gan(updates)).module_of(0).generator.bias
    torch.testing.assert_close(generated, rows().mean(0).float(), atol=0.2, rtol=0)


def test_weights_of_rows_reach_the_module():
    heavy = (rows()[:, 0] > 2).float() + 1e-3
    training = MAP(SGD(0.1), epochs=300, batch_size=None, schedule=Cosine())
    generated = training.fit(gan(weight=heavy)).module_of(0).generator.bias
    wanted = (rows() * heavy[:, None]).sum(0) / heavy.sum()
    torch.testing.assert_close(generated, wanted.float(), atol=0.2, rtol=0)


def test_history_and_callbacks_have_one_loss_for_each_player():
    seen = []
    training = MAP(Adam(0.01), epochs=5, batch_size=10, callbacks=(lambda event: seen.append(event),))
    history = training.fit(gan()).info["history"]
    assert set(history) == {"critic_loss", "generator_loss", "lr"}
    assert [event.numbers["critic_loss"] for event in seen] == history["critic_loss"]
    assert [event.epoch for event in seen] == [1, 2, 3, 4, 5]


def test_recorded_losses_are_means_over_the_moves_of_an_epoch():
    """With a rate near 0 nothing moves: the loss of a player is that of the start, however many steps it takes."""
    game = Game("Bilinear", ("x", Player("y", steps=3)))
    fit = MAP(SGD(1e-12), epochs=2, batch_size=8).fit(problem(lambda seed: Bilinear(), game))
    product = START[0] * START[1]
    np.testing.assert_allclose(fit.info["history"]["x_loss"], [product] * 2, rtol=1e-5)
    np.testing.assert_allclose(fit.info["history"]["y_loss"], [-product] * 2, rtol=1e-5)


def test_a_seed_gives_the_same_bits_and_members_of_an_ensemble_differ():
    training = MAP(Adam(0.02), epochs=4, batch_size=10)
    assert torch.equal(ends(training.fit(gan())), ends(training.fit(gan())))
    members = Ensemble(2, by=training).fit(gan()).parameters["generator.bias"]
    assert len(members) == 2
    assert not torch.equal(members[0], members[1])


@pytest.mark.parametrize("optimizer", [SGD(0.05, momentum=0.5), Adam(0.02), ExtraGradient(0.02, betas=(0.5, 0.9))])
def test_a_killed_game_resumes_to_the_same_bits(optimizer, tmp_path):
    steps = Player("critic", steps=2)
    whole = MAP(optimizer, epochs=6, batch_size=16, average=EMA(0.9)).fit(gan(critic=steps))

    def killed(event):
        if event.epoch == 3:
            raise KeyboardInterrupt

    path = Checkpoint(str(tmp_path / "game.ckpt"), seconds=0)
    resumable = MAP(optimizer, epochs=6, batch_size=16, average=EMA(0.9), checkpoint=path)
    with pytest.raises(KeyboardInterrupt):
        resumable.replace(callbacks=(killed,)).fit(gan(critic=steps))
    again = resumable.fit(gan(critic=steps))
    assert torch.equal(ends(again), ends(whole))
    assert again.info["history"] == whole.info["history"]


def test_an_exponential_average_calms_the_turning_game():
    """Alternating play circles at a distance for ever; the average of the circle is near its centre."""
    last = ends(full(SGD(0.1), 400).fit(bilinear("alternating"))).norm()
    mean = ends(full(SGD(0.1), 400, average=EMA(0.99)).fit(bilinear("alternating"))).norm()
    assert mean < 0.3 * last


def test_noise_on_rows_and_gradients_is_added():
    plain = ends(MAP(SGD(0.01), epochs=2).fit(gan()))
    for noise in (Noise(inputs=0.5), Noise(gradients=0.5)):
        assert not torch.equal(plain, ends(MAP(SGD(0.01), epochs=2, noise=noise).fit(gan())))


# --- divergence and misuse ------------------------------------------------------------------------------------------
def test_a_diverging_game_says_what_to_try_and_keeps_the_last_good_state():
    with pytest.raises(DivergenceError, match=r"Bilinear diverged: the loss of the . is -?inf at step") as caught:
        MAP(SGD(10.0), epochs=1000, batch_size=10).fit(bilinear())
    assert "Try a smaller learning rate, optimizer=ExtraGradient" in str(caught.value)
    posterior = caught.value.posterior
    history = posterior.info["history"]["x_loss"]
    assert bool(ends(posterior).isfinite().all())
    assert np.isfinite(history).all()
    assert f"The state after epoch {len(history)} is kept" in str(caught.value)
    finite = MAP(SGD(10.0), epochs=len(history), batch_size=10).fit(bilinear())
    assert torch.equal(ends(finite), ends(posterior))


def test_parameters_that_are_not_finite_end_a_game_whose_losses_are():
    class Broken(Bilinear):
        def forward(self, rows, players=("x", "y"), weight=None):
            losses = super().forward(rows, players)
            return torch.where(losses > 1e9, losses, losses.clamp(-1, 1) + 0 * (self.x[0] - START[0]).sqrt())

    game = Game("Broken", ("x", "y"))
    with pytest.raises(DivergenceError, match=r"Broken diverged: a parameter is not finite at step 1") as caught:
        full(SGD(0.1), 1).fit(problem(lambda seed: Broken(), game))
    np.testing.assert_allclose(ends(caught.value.posterior), START)


def test_an_error_of_divergence_travels_between_processes():
    with pytest.raises(DivergenceError) as caught:
        MAP(SGD(10.0), epochs=1000, batch_size=10).fit(gan())
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert torch.equal(ends(copied.posterior), ends(caught.value.posterior))


@pytest.mark.parametrize(
    ("training", "message"),
    [
        (MAP(validation=0.1), r"MAP\(validation=0.1\): GAN is a game, where no loss falls for all"),
        (MAP(patience=3), r"MAP\(patience=3\): GAN is a game"),
        (MAP(noise=Noise(weights=0.1)), r"MAP\(noise=Noise\(weights=0.1\)\): GAN is a game"),
        (MAP(GradientDescent()), r"follows one loss down; GAN is a game, .*: use Adam, SGD or ExtraGradient"),
        (MAP(LBFGS()), r"follows one loss down; GAN is a game"),
    ],
)
def test_what_makes_no_sense_for_a_game_is_refused(training, message):
    with pytest.raises(SpecError, match=message):
        training.fit(gan())


def test_a_module_that_does_not_fit_its_game_is_refused():
    game = Game("Bilinear", ("x", "y", "z"))
    with pytest.raises(SpecError, match="Bilinear: its player 'z' has no parameters to train"):
        MAP().fit(problem(lambda seed: Bilinear(), game))

    class Summed(Bilinear):
        def forward(self, rows, players=("x", "y"), weight=None):
            return super().forward(rows, players).sum()

    with pytest.raises(SpecError, match=r"gives a tensor of shape \(\); a game needs one loss for each: \(2,\)"):
        MAP().fit(problem(lambda seed: Summed(), Game("Bilinear", ("x", "y"))))
