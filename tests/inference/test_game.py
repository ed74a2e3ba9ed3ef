"""What a game tells an inference: players, whose a parameter is, who moves when, and who can play."""

from __future__ import annotations

import pytest

from likely.core.errors import SpecError
from likely.inference import HMC, MAP, Ensemble, Game, MCDropout, Player
from likely.inference.objective import able, refuse
from likely.optim import Adam

GAN = Game("GAN", ("generator", "critic"))


def test_a_game_knows_whose_a_parameter_is():
    assert GAN.player_of("generator.0.bias") == "generator"
    with pytest.raises(SpecError, match=r"GAN has a parameter 'judge\.weight' of none of its players"):
        GAN.player_of("judge.weight")


def test_players_with_fewer_steps_join_in_at_the_end_of_a_round():
    game = Game("three", (Player("a", steps=3), "b", Player("c", steps=2)))
    assert game.moves() == [("a",), ("a", "c"), ("a", "b", "c")]


def test_an_inference_that_cannot_play_names_those_that_can():
    assert set(able(GAN)) == {"Ensemble", "FineTune", "MAP"}
    with pytest.raises(SpecError, match=r"HMC needs the exact log-probability of each row; GAN has none: use .*MAP"):
        refuse(HMC(), GAN)
    with pytest.raises(SpecError, match="MCDropout needs the log-probability of each row; GAN has none"):
        refuse(MCDropout(), GAN)
    with pytest.raises(SpecError, match="Ensemble needs the log-probability of each row; GAN has none"):
        refuse(Ensemble(2, weights="posterior"), GAN)
    refuse(MAP(), GAN)
    refuse(Ensemble(2), GAN)


def test_players_are_values():
    assert Player("critic", 5, "adam(lr=0.1)") == Player("critic", steps=5, optimizer=Adam(0.1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Player("a.b"), "name must be the name of a part of the module"),
        (lambda: Player("a", steps=0), "steps must be a positive integer"),
        (lambda: Game("GAN", ()), r"GAN: players must be one or more, with different names; found \(\)"),
        (lambda: Game("GAN", ("a", "a")), "with different names; found"),
        (lambda: Game("GAN", ("a", "b"), updates="both"), 'updates must be "simultaneous" or "alternating"; found'),
    ],
)
def test_what_is_no_game_is_refused(make, message):
    with pytest.raises(SpecError, match=message):
        make()
