"""Draws of a diffusion model beside diffusers' scheduler loop: the same network, the same number of steps.

A small MLP, where what is around the network counts, and a U-Net, which takes nearly all of the time. Both sides have
the linear schedule and a network that tells the noise; their draws have the same moments.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from likely import Diffusion
from likely.inference import MAP
from likely.models.generative import DDIM, DDPM, Linear
from likely.networks import MLP, Network, UNet

from .datasets import digits, numbers
from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

STEPS, TRAINED = 100, 1_000
SMALL, LEVEL = 1 / 1.3, 1.05
"""Targets: where the network is small, and where it takes all of the time."""


def run(repeats: int = 7) -> list[Result]:
    """With one thread, so that the machine's load matters least."""
    if importlib.util.find_spec("diffusers") is None:
        print("\ndiffusion_sampler: diffusers is not installed.", flush=True)
        return []
    return with_threads(1, lambda: measure(repeats))


def measure(repeats: int) -> list[Result]:
    rows = numbers(1_000, 8)[0]
    cases: list[tuple[str, Network, np.ndarray, int, int, float]] = [
        ("MLP", MLP((64, 64), activation="silu"), rows, 100, 256, SMALL),
        ("UNet", UNet((16, 32), activation="silu", norm="layer"), digits().x.reshape(-1, 1, 8, 8), 10, 64, LEVEL),
    ]
    results = []
    for name, network, x, epochs, count, target in cases:
        training = MAP(epochs=epochs, batch_size=100)
        model = Diffusion(network, "noise", Linear(), TRAINED, inference=training, random_state=0).fit(x)
        for sampler in (DDPM(STEPS), DDIM(STEPS)):
            model.set_params(sampler=sampler)
            peer = f"diffusers, {type(sampler).__name__}"
            calls = {"likely": lambda: model.sample(count, random_state=0), peer: theirs(model, count)}  # noqa: B023
            title = f"diffusion_sampler, {STEPS} steps, {name}"
            judge = partial(quality, x)
            results += compare(title, interleave(calls, repeats), judge, {peer: target})
    return results


def theirs(model: Diffusion, count: int) -> Callable[[], np.ndarray]:
    """The loop of diffusers' documentation, around the network of the model."""
    from diffusers import DDIMScheduler, DDPMScheduler

    module = model.posterior_.module.eval()
    size = float(torch.stack([module.low.abs(), module.high.abs()]).max())
    options = {"beta_schedule": "linear", "beta_start": 1e-4, "beta_end": 0.02, "clip_sample_range": size}
    ancestral = isinstance(model.sampler, DDPM)
    scheduler = (DDPMScheduler if ancestral else DDIMScheduler)(num_train_timesteps=TRAINED, **options)
    asked = {} if ancestral else {"use_clipped_model_output": True}  # the direction that fits the clipped row, as ours

    @torch.no_grad()
    def draw() -> np.ndarray:
        generator = torch.Generator().manual_seed(0)
        scheduler.set_timesteps(STEPS)
        x: Tensor = torch.randn(count, *module.shape, generator=generator)
        for step in scheduler.timesteps:
            noise = module.field(x, ((step + 1) / TRAINED).expand(count), None)
            x = scheduler.step(noise, step, x, generator=generator, **asked).prev_sample
        return module.units.inverse(x).numpy()

    return draw


def quality(x: np.ndarray, mine: np.ndarray, other: np.ndarray) -> tuple[str, bool]:
    """The largest difference of column means, and of deviations, in deviations of the data."""
    unit = x.std()
    means = float(np.abs(mine.mean(0) - other.mean(0)).max() / unit)
    widths = float(abs(mine.std() / other.std() - 1))
    return f"means differ by {means:.2f} deviations at most, deviations by {widths:.0%}", means < 0.75 and widths < 0.1


if __name__ == "__main__":
    show(run())
