"""GAN: games that find known rows, every loss and penalty, packs, conditions, weights, files, and what is refused."""

from __future__ import annotations

import math
import pickle

import numpy as np
import polars as pl
import pytest
import torch
from scipy.optimize import linear_sum_assignment

import likely
from likely import GAN
from likely.core.checkpoint import Checkpoint
from likely.core.errors import DataError, DivergenceError, SpecError
from likely.core.random import drawing
from likely.evaluate import modes
from likely.inference import EMA, HMC, MAP
from likely.inference.objective import able
from likely.models.generative import Clip, Codes, Gradient, Spectral
from likely.models.generative.gan import Adversarial
from likely.models.generative.gan_losses import LOSSES
from likely.networks import MLP, ConvGenerator, ConvNet
from likely.optim import SGD, Adam, ExtraGradient
from likely.priors import Normal

RNG = np.random.default_rng(0)
ROWS = RNG.normal(loc=(3.0, -1.0), scale=(2.0, 0.1), size=(60, 2))
LABELS = np.where(np.arange(60) % 3 == 0, "few", "many")
IMAGES = RNG.normal(size=(12, 1, 6, 6))
SMALL = MLP((8,), activation="leaky_relu")
QUICK = MAP(Adam(1e-2, betas=(0.5, 0.9)), epochs=2, batch_size=20)
CALM = Gradient(0.1, norm=0.0, at="real")


def tiny(penalty=None, inference=QUICK, **arguments):
    return GAN(SMALL, SMALL, latent=2, penalty=penalty, inference=inference, random_state=0, **arguments)


def module_of(model) -> Adversarial:
    return model.posterior_.module_of(0)


# --- rows that are known --------------------------------------------------------------------------------------------
def ring(count, scale=0.1):
    angles = 2 * np.pi * np.arange(8) / 8
    centres = np.column_stack([np.cos(angles), np.sin(angles)])
    rng = np.random.default_rng(0)
    return centres[rng.integers(8, size=count)] + scale * rng.normal(size=(count, 2)), centres


def test_a_short_game_finds_modes_of_the_ring():
    """Of Normal rows with the ring's moments 26 % are near a mode; of this game's 73 % or more, in each of 20 seeds."""
    rows, centres = ring(1000)
    training = MAP(Adam(3e-3, betas=(0.0, 0.9)), epochs=50, batch_size=125, average=EMA(0.98))
    model = GAN(MLP((32, 32)), MLP((32, 32), activation="leaky_relu"), 2, penalty=CALM, inference=training)
    new = modes(model.set_params(random_state=0).fit(rows).sample(1000, random_state=0), centres, 0.1)
    assert new.reached >= 7
    assert new.near > 0.6


@pytest.mark.parametrize("optimizer", [SGD(0.1), Adam(2e-2, betas=(0.0, 0.9)), ExtraGradient(0.1)])
def test_a_linear_game_finds_mean_and_scale_in_the_units_of_the_data(optimizer):
    """A linear generator of Normal rows against a quadratic critic has the moments of the data as its only rest.

    A look ahead is stable while the step times the critic's curvature, about 2 + s⁴ at scale s, is below 1. So the
    scale starts at 1 or less, which `torch.nn.Linear` promises, and the critic with nothing to say.
    """

    class Quadratic(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(4, 1))

        def forward(self, x):
            return torch.cat([x, x.square()], 1) @ self.weight

    training = MAP(optimizer, epochs=200, batch_size=None, average=EMA(0.98))
    model = GAN(torch.nn.Linear(2, 2), Quadratic(), 2, penalty=CALM, inference=training, random_state=0).fit(ROWS)
    new = model.sample(4000, random_state=0)
    np.testing.assert_allclose(new.mean(0), ROWS.mean(0), atol=0.4 * ROWS.std(0).max())
    np.testing.assert_allclose(new.std(0), ROWS.std(0), rtol=0.4)


def test_the_losses_are_those_of_the_scores():
    """Critic and generator see the same noise if they are asked from the same seed."""
    model = tiny().fit(ROWS)
    module, x = module_of(model).eval(), torch.from_numpy(ROWS).float()
    for name, loss in LOSSES.items():
        module.loss = name
        with drawing(3), torch.no_grad():
            both = module(x)
        with drawing(3), torch.no_grad():
            made = module.critic(module._made(module._noise(len(x)), None))
            real = module.critic(module.units(x))
        expected = torch.stack([loss.generator(made).mean(), loss.critic(real, made).mean()])
        torch.testing.assert_close(both, expected, msg=name)


# --- every choice ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", [None, "clip", "gradient", "spectral"])
def test_every_loss_with_every_penalty_plays(loss, penalty):
    model = tiny(penalty, loss=loss, critic_steps=2).fit(ROWS)
    assert model.sample(5).shape == (5, 2)
    assert {"generator_loss", "critic_loss"} < set(model.history_)
    assert np.isfinite(model.history_["critic_loss"]).all()


@pytest.mark.parametrize("name", able(tiny()._objective()))
def test_every_able_inference_fits(name):
    inference = able(tiny()._objective())[name].example()
    inference = inference.replace(train="all") if name == "FineTune" else inference  # players have no one head
    assert np.isfinite(tiny(inference=inference).fit(ROWS).sample(5)).all()


def test_clipped_weights_stay_in_their_box():
    """What the last move did after the last pass is at most a step."""
    model = tiny(Clip(0.05)).fit(ROWS)
    largest = max(value.abs().max().item() for value in module_of(model).critic.parameters())
    assert largest <= 0.05 + 2 * 1e-2


def test_packs_hold_every_row_and_join_along_features():
    module = module_of(tiny(pack=3).fit(ROWS))
    order = module._packs(7, torch.device("cpu"))
    assert order.shape == (3, 3)
    assert set(order.flatten().tolist()) == set(range(7))
    assert all(len(set(pack.tolist())) == 3 for pack in order)
    rows = torch.arange(14.0).view(7, 2)
    torch.testing.assert_close(module._packed(rows, order)[1, 2:4], rows[order[1, 1]])
    assert module._packed(torch.zeros(7, 1, 6, 6), order).shape == (3, 3, 6, 6)
    torch.testing.assert_close(module._weights(torch.arange(7.0), order), order.float().prod(1))


@pytest.mark.parametrize("pack", [1, 2])
@pytest.mark.parametrize("penalty", [None, CALM, Spectral()])
def test_images_are_made_and_judged_by_networks_of_their_own(pack, penalty):
    model = GAN(SMALL, ConvNet((2,), hidden=(2,)), 2, pack=pack, penalty=penalty, inference=QUICK, random_state=0)
    assert model.fit(IMAGES).sample(3).shape == (3, 1, 6, 6)
    labelled = model.fit(IMAGES, np.arange(12) % 2)
    assert labelled.sample(3, condition=1).shape == (3, 1, 6, 6)


@pytest.mark.parametrize("side", [8, 28])
def test_images_are_made_by_transposed_convolutions(side):
    """DCGAN's networks, at sizes that can and cannot be halved three times; conditions and codes join."""
    images = RNG.normal(size=(8, 1, side, side))
    critic = ConvNet((2, 2), downsample="stride", activation="leaky_relu", hidden=())
    model = GAN(ConvGenerator((side, side), channels=(4, 2, 2)), critic, 2, codes=2, inference=QUICK, random_state=0)
    labelled = model.fit(images, np.arange(8) % 2)
    assert labelled.sample(3, condition=1, codes=[[0], [1], [1]]).shape == (3, 1, side, side)
    assert np.isfinite(labelled.sample(3, condition=[0, 1, 1])).all()
    assert labelled.transform(images, np.arange(8) % 2).shape == (8, 2)


def test_real_and_generated_rows_do_not_share_batch_statistics():
    normed = MLP((4,), norm="batch")
    assert module_of(GAN(SMALL, normed, 2, inference=QUICK).fit(ROWS)).apart
    assert not module_of(tiny().fit(ROWS)).apart


# --- codes ----------------------------------------------------------------------------------------------------------
def test_a_categorical_code_finds_the_groups():
    """Four groups 10 standard deviations apart, of which codes at random would name 25 % or little more."""
    centres = np.array([[-2.0, -2.0], [-2.0, 2.0], [2.0, -2.0], [2.0, 2.0]])
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=800)
    rows = centres[labels] + 0.4 * rng.normal(size=(800, 2))
    training = MAP(Adam(3e-3, betas=(0.0, 0.9)), epochs=50, batch_size=100, average=EMA(0.98))
    networks = MLP((32, 32)), MLP((32, 32), activation="leaky_relu")
    model = GAN(*networks, 2, codes=4, penalty=CALM, inference=training, random_state=0).fit(rows)
    new, hidden = model.sample(800, random_state=0, return_hidden=True)
    nearest = np.square(new[:, None] - centres).sum(-1).argmin(1)
    assert hidden.shape == (800, 1 + 2)
    assert matched(hidden[:, 0].astype(int), nearest) > 0.8
    assert matched(model.transform(rows).argmax(1), labels) > 0.8
    assert Codes((4,)).entropy - model.history_["reader_loss"][-1] > 0.8  # nats that rows hold of the code, of 1.39
    one = model.sample(50, codes=2, random_state=0)
    assert (
        np.square(one[:, None] - centres).sum(-1).argmin(1) == np.bincount(nearest[hidden[:, 0] == 2]).argmax()
    ).mean() > 0.8


def matched(codes, labels):
    """The fraction of rows whose codes agree with labels, at the best naming of the codes."""
    counts = np.zeros((codes.max() + 1, labels.max() + 1))
    np.add.at(counts, (codes, labels), 1)
    return counts[linear_sum_assignment(-counts)].sum() / len(codes)


@pytest.mark.parametrize("pack", [1, 2])
def test_codes_of_both_kinds_are_given_and_read(pack, tmp_path):
    model = tiny(codes=Codes((2, 3), numbers=1), pack=pack).fit(ROWS, LABELS)
    assert set(model.history_) == {"generator_loss", "critic_loss", "reader_loss", "lr"}
    wanted = [[1, 2, 0.5]] * 4
    new, hidden = model.sample(4, "few", random_state=0, codes=wanted, return_hidden=True)
    np.testing.assert_allclose(hidden[:, :3], wanted)
    np.testing.assert_array_equal(new, model.sample(4, "few", random_state=0, codes=[1, 2, 0.5]))
    read = model.transform(ROWS, LABELS)
    np.testing.assert_allclose(read[:, :2].sum(1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(read[:, 2:5].sum(1), 1.0, rtol=1e-5)
    model.save(tmp_path / "codes.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "codes.likely").transform(ROWS, LABELS), read)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 0.5]] * 3, r"codes has shape \(3, 2\); it must be \(1, 2\) or \(2, 2\)"),
        ([[2, 0.5]], "codes: column 0 has labels, which must be integers from 0 to 1"),
        ([[0, math.nan]], "codes has values that are not finite"),
        ("first", "codes must be numbers: labels first, then numbers from −1 to 1"),
    ],
)
def test_codes_that_there_are_not_are_refused(codes, message):
    model = tiny(codes=Codes((2,), numbers=1)).fit(ROWS)
    with pytest.raises(DataError, match=message):
        model.sample(2, codes=codes)


def test_without_codes_questions_about_them_are_refused():
    model = tiny().fit(ROWS)
    with pytest.raises(DataError, match=r"codes: this GAN has none; GAN\(codes=Codes\(…\)\) learns them"):
        model.sample(2, codes=1)
    assert not hasattr(model, "transform")


# --- conditions and weights -----------------------------------------------------------------------------------------
def test_new_rows_follow_their_condition():
    """Two groups 8 standard deviations apart."""
    groups = np.repeat(["left", "right"], 60)
    rows = RNG.normal(size=(120, 1)) + np.where(groups == "left", -4.0, 4.0)[:, None]
    training = MAP(Adam(1e-2, betas=(0.0, 0.9)), epochs=60, batch_size=40, average=EMA(0.95))
    model = GAN(SMALL, SMALL, 2, penalty=CALM, inference=training, random_state=0).fit(rows, groups)
    left, right = (model.sample(200, condition=side, random_state=0).mean() for side in ("left", "right"))
    assert left < -2
    assert right > 2
    assert model.sample(2, condition=["left", "right"]).shape == (2, 1)
    with pytest.raises(DataError, match="condition has 3 rows; it must have 1, or n = 2"):
        model.sample(2, condition=["left"] * 3)


def test_vectors_are_conditions_and_join_packs():
    model = tiny(pack=2).fit(ROWS, ROWS[:, :1])
    assert model.sample(4, condition=[[0.5]]).shape == (4, 2)


def test_rows_without_weight_do_not_count():
    rows = np.concatenate([RNG.normal(size=(60, 1)), RNG.normal(8.0, 1.0, size=(60, 1))])
    weight = np.repeat([1.0, 0.0], 60)
    training = MAP(Adam(1e-2, betas=(0.0, 0.9)), epochs=60, batch_size=40, average=EMA(0.95))
    model = GAN(SMALL, SMALL, 2, penalty=CALM, inference=training, random_state=0)
    assert abs(model.fit(rows, sample_weight=weight).sample(500, random_state=0).mean()) < 2


# --- the same again -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("penalty", [None, Gradient(2.0), Spectral()])
def test_a_file_gives_the_same_bits(penalty, tmp_path):
    model = tiny(penalty, pack=2).fit(ROWS, LABELS)
    model.save(tmp_path / "game.likely")
    again = likely.load(tmp_path / "game.likely")
    asked = {"n": 5, "condition": "few", "random_state": 1}
    np.testing.assert_array_equal(again.sample(**asked), model.sample(**asked))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).sample(**asked), model.sample(**asked))


def test_a_seed_gives_the_same_game_and_codes_come_with_rows():
    one, two = (tiny("gradient", pack=2).fit(ROWS) for _ in range(2))
    new, codes = one.sample(5, random_state=1, return_hidden=True)
    np.testing.assert_array_equal(new, two.sample(5, random_state=1))
    assert codes.shape == (5, 2)


@pytest.mark.parametrize("penalty", ["gradient", "spectral"])
def test_a_killed_game_resumes_to_the_same_bits(penalty, tmp_path):
    def killed(event):
        if event.epoch == 1:
            raise KeyboardInterrupt

    path = Checkpoint(str(tmp_path / "game.ckpt"), seconds=0)
    with pytest.raises(KeyboardInterrupt):
        tiny(penalty, QUICK.replace(checkpoint=path, callbacks=(killed,))).fit(ROWS)
    again = tiny(penalty, QUICK.replace(checkpoint=path)).fit(ROWS).sample(5, random_state=0)
    np.testing.assert_array_equal(again, tiny(penalty).fit(ROWS).sample(5, random_state=0))


def test_an_average_makes_rows_of_its_own():
    last, mean = (tiny(inference=QUICK.replace(average=average)).fit(ROWS) for average in (None, EMA(0.5)))
    assert not np.array_equal(last.sample(5, random_state=0), mean.sample(5, random_state=0))


def test_a_prior_is_heard():
    plain, held = (tiny(inference=QUICK, prior=prior).fit(ROWS) for prior in ("flat", Normal(0.1)))
    norms = [module_of(model).generator.network[0].weight.norm() for model in (plain, held)]
    assert norms[1] < norms[0]


SCRIPT = """
import numpy as np
from likely import GAN
from likely.inference import MAP
from likely.networks import MLP

rows = np.random.default_rng(0).normal(size=(40, 2))
training = MAP(epochs=3, batch_size=10)
model = GAN(MLP((4,)), MLP((4,)), latent=2, codes=2, inference=training, random_state=0).fit(rows)
answers = {"new": model.sample(5, random_state=0), "read": model.transform(rows)}
"""


def test_two_processes_play_together(by_processes):
    """Both end with the same players, near those of one process: noise is drawn apart, rows are shared."""
    alone, first, second = by_processes(SCRIPT)
    for name, answer in alone.items():
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_allclose(first[name], answer, atol=0.3)


# --- what is refused ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("question", ["log_prob", "score", "impute"])
def test_questions_of_a_density_are_refused_by_name(question):
    model = tiny().fit(ROWS)
    assert not hasattr(model, question)
    with pytest.raises(AttributeError, match=f"GAN has no {question}: it makes rows without a density of them; Flow"):
        getattr(model, question)


def test_columns_cannot_be_held():
    with pytest.raises(DataError, match="GAN cannot hold some columns and draw the rest; give them as a condition"):
        tiny().fit(ROWS).sample(2, condition={0: 1.0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"latent": 0}, r"GAN\(latent=0\): latent must be a positive integer"),
        ({"pack": 1.5}, r"GAN\(pack=1.5\): pack must be a positive integer"),
        ({"critic_steps": 0}, r"GAN\(critic_steps=0\): critic_steps must be a positive integer"),
        ({"loss": "hinge"}, r"GAN\(loss='hinge'\): loss must be one of 'minimax', 'non_saturating', 'least_sq"),
        ({"codes": 1}, "codes must be one of the codes specs"),
        ({"codes": Codes}, r"codes=Codes is a class; write codes=Codes\(\)"),
        ({"penalty": "weights"}, r"Unknown critic_penalty 'weights'.* Known: Clip, Gradient, Spectral"),
        ({"penalty": 3.0}, r"penalty must be one of the critic_penalty specs \(Clip, Gradient, Spectral\)"),
        ({"inference": HMC()}, r"HMC needs .*; GAN has none: use .*MAP"),
        ({"inference": MAP(validation=0.1)}, r"MAP\(validation=0.1\): GAN is a game"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments, message):
    with pytest.raises(SpecError, match=message):
        GAN(SMALL, SMALL, **arguments).fit(ROWS)


def test_gaps_are_refused_by_name():
    with pytest.raises(DataError, match="X has missing values, and GAN cannot marginalise over them"):
        tiny().fit([[1.0, math.nan], [2.0, 3.0]])
    with pytest.raises(DataError, match="GAN needs 2 rows or more; X has 1"):
        tiny().fit([[1.0, 2.0]])


def test_a_table_of_numbers_gives_a_table():
    new = tiny().fit(pl.DataFrame(ROWS, schema=["a", "b"])).sample(3)
    assert isinstance(new, pl.DataFrame)
    assert new.columns == ["a", "b"]


def test_a_game_that_diverges_keeps_its_last_sound_state():
    model = tiny(inference=MAP(SGD(1e4), epochs=200, batch_size=20), loss="wasserstein")
    with pytest.raises(DivergenceError, match=r"GAN diverged: .* at step \d+ .* Try a smaller learning rate"):
        model.fit(ROWS)
    assert np.isfinite(model.sample(5)).all()
