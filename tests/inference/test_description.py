"""What is known of a module without building it again."""

from __future__ import annotations

from torch import nn

from likely.inference.description import Description
from likely.inference.predictor import Predictor


def test_shapes_size_and_names_are_those_of_the_parameters():
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))
    description = Description.of(module)
    assert description.size == sum(value.numel() for value in module.parameters()) == 24
    assert description.shapes == {name: tuple(value.shape) for name, value in module.named_parameters()}
    assert description.trainable == ("0.weight", "0.bias", "2.weight")


def test_frozen_parameters_count_but_are_not_trainable():
    module = nn.Linear(3, 2)
    module.bias.requires_grad_(False)
    assert Description.of(module).trainable == ("weight",)
    assert Description.of(module).size == 8


def test_only_a_predictor_with_one_linear_layer_is_linear():
    assert Description.of(Predictor(nn.Linear(2, 1))).linear
    assert not Description.of(Predictor(nn.Sequential(nn.Linear(2, 1)))).linear
    assert not Description.of(nn.Linear(2, 1)).linear


def test_a_tensor_like_a_parameter_takes_the_memory_of_one_number():
    like = Description.of(nn.Linear(300, 200)).like("weight")
    assert like.shape == (200, 300)
    assert like.untyped_storage().nbytes() == like.element_size()


def test_modules_of_the_same_parts_have_the_same_text():
    assert Description.of(nn.Linear(2, 1)).text == Description.of(nn.Linear(2, 1)).text
    assert Description.of(nn.Linear(2, 1)).text != Description.of(nn.Linear(2, 1, bias=False)).text
    assert "\n" not in Description.of(nn.Sequential(nn.ReLU(), nn.ReLU())).text
