"""The public surface: what it names exists, is documented with an example, and loads no more than it needs."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.resources
import inspect
import subprocess
import sys
import typing

import pytest

import likely

ROOMS = (
    "likelihoods",
    "networks",
    "priors",
    "inference",
    "optim",
    "evaluate",
    "plots",
    "probability",
    "data",
    "data.text",
    "decoding",
    "models",
    "sampling",
    "models.bayesian_network",
    "models.markov",
    "models.emissions",
    "models.language",
    "models.segmentation",
    "kernels",
    "robust",
    "theory",
    "theory.explain",
)

BASES = {
    *(
        "Attack",
        "Average",
        "Decoding",
        "Emission",
        "Inference",
        "KernelModule",
        "Latent",
        "LineSearch",
        "Network",
        "Objective",
        "Optimizer",
    ),
    *("Prior", "Sampler", "Schedule", "Tokens", "Vocabulary"),
}
"""Abstract bases: their subclasses hold the examples."""

PARTS = {
    *("ChainPosterior", "LaplacePosterior", "VariationalPosterior"),
    *("DropoutPosterior", "Epoch", "GaussianPosterior", "Info", "LatentFit", "Part", "Posterior", "Problem", "Rates"),
    *("State", "automatic"),
}
"""What an inference is handed and hands back: it is met inside a fitted model, never made by hand."""


def is_code(value):
    return inspect.isclass(value) or inspect.isroutine(value)


def public():
    for room in ("", *ROOMS):
        module = importlib.import_module(f"likely.{room}" if room else "likely")
        for name in module.__all__:
            yield pytest.param(module, name, id=f"{room or 'likely'}.{name}")


def shown_by_a_function(cls, module):
    """Whether a function of the same room returns this class and has an example: a result is shown where it is made."""
    makers = [getattr(module, name) for name in module.__all__]
    makers = [maker for maker in makers if inspect.isfunction(maker) and ">>>" in (maker.__doc__ or "")]
    given = [typing.get_type_hints(maker).get("return") for maker in makers]
    return any(hint is cls or cls in typing.get_args(hint) for hint in given)


@pytest.mark.parametrize(("module", "name"), list(public()))
def test_every_public_name_is_documented_with_an_example(module, name):
    value = getattr(module, name)
    if not is_code(value):
        return
    assert value.__doc__, f"{name} has no docstring"
    example = ">>>" in value.__doc__ or shown_by_a_function(value, module)
    assert example or name in BASES | PARTS, f"{name} has no example"


def test_the_lists_of_exceptions_name_only_what_is_there():
    names = {param.values[1] for param in public()}
    assert names >= BASES | PARTS


@pytest.mark.parametrize("room", [room for room in ROOMS if "." not in room])
def test_rooms_open_on_first_use(room):
    assert getattr(likely, room) is importlib.import_module(f"likely.{room}")
    assert room in dir(likely)


def test_names_are_listed_and_found():
    for name in likely.__all__:
        assert name in dir(likely)
        assert getattr(likely, name) is not None
    with pytest.raises(AttributeError, match="module 'likely' has no attribute 'Regresor'"):
        likely.Regresor  # noqa: B018


def loaded_after(code):
    heavy = ("matplotlib", "numba", "pandas", "polars", "rich", "typer", "torch")
    check = f"import sys; {code}; print(*[name for name in {heavy} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.split()


def test_importing_likely_loads_nothing_heavy():
    assert loaded_after("import likely") == []


def test_a_fit_loads_no_compiler_no_pictures_no_tables_no_command_line():
    fit = "from likely import Regressor; Regressor().fit([[0.0], [1.0]], [1.0, 2.0]).predict([[2.0]])"
    assert not {"matplotlib", "numba", "polars", "typer"} & set(loaded_after(fit))


def test_type_hints_are_shipped():
    assert importlib.resources.files("likely").joinpath("py.typed").is_file()
