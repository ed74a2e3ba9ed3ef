"""Training steps of a VAE against a loop by hand, and against pythae's trainer where it is installed.

784-200-200-50-200-200-784, binary pixels, batches of 128, Adam(1e-3), the same number of epochs on every side. What is
before the first step is left out: a side's seconds are those of its long fit less those of its short one.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from likely import VAE
from likely.inference import MAP
from likely.likelihoods import Bernoulli
from likely.networks import MLP
from likely.optim import Adam

from .datasets import mnist
from .timing import Result, interleave, show, with_threads

__all__ = ["run"]

ROWS, BATCH, SHORT, LONG = 6_400, 128, 1, 4
LOOP, PYTHAE = "PyTorch loop, fused Adam", "pythae"
TARGETS = {LOOP: 1.05, PYTHAE: 1 / 1.3}


def run(repeats: int = 7) -> list[Result]:
    """With one thread, so that the machine's load matters least."""
    return with_threads(1, lambda: measure(repeats))


def measure(repeats: int) -> list[Result]:
    x = (mnist(ROWS).x > 0.5).astype(np.float32)
    fits: dict[str, Callable[[np.ndarray, int], float]] = {"likely": likely_fit, LOOP: loop_fit}
    if importlib.util.find_spec("pythae") is not None:
        fits[PYTHAE] = pythae_fit
    calls = {f"{name} {epochs}": _bound(fit, x, epochs) for name, fit in fits.items() for epochs in (SHORT, LONG)}
    timed = interleave(calls, repeats)
    steps = (LONG - SHORT) * ROWS // BATCH
    least = {name: (timed[f"{name} {LONG}"].least - timed[f"{name} {SHORT}"].least) / steps for name in fits}
    middle = {name: (timed[f"{name} {LONG}"].median - timed[f"{name} {SHORT}"].median) / steps for name in fits}
    loss = {name: timed[f"{name} {LONG}"].value for name in fits}
    return [
        Result(
            "vae_step, one thread",
            name,
            1e3 * middle["likely"],
            1e3 * middle[name],
            f"−ELBO of the last epoch {loss['likely']:.1f} and {loss[name]:.1f}",
            loss["likely"] < loss[name] + 5.0,
            TARGETS[name],
            "ms",
            (1e3 * least["likely"], 1e3 * least[name]),
        )
        for name in fits
        if name != "likely"
    ]


def _bound(fit: Callable[[np.ndarray, int], float], x: np.ndarray, epochs: int) -> Callable[[], float]:
    return lambda: fit(x, epochs)


def likely_fit(x: np.ndarray, epochs: int) -> float:
    training = MAP(Adam(1e-3), epochs=epochs, batch_size=BATCH)
    networks = {"encoder": MLP((200, 200)), "decoder": MLP((200, 200))}
    model = VAE(Bernoulli(), 50, **networks, inference=training, random_state=0).fit(x)
    return float(model.history_["loss"][-1])


def loop_fit(x: np.ndarray, epochs: int) -> float:
    """What one would write."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 100))
    decoder = nn.Sequential(nn.Linear(50, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 784))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3, fused=True)
    rows, total = torch.from_numpy(x), 0.0
    for _ in range(epochs):
        total = 0.0
        for index in torch.randperm(len(rows)).split(BATCH):
            batch = rows.index_select(0, index)
            mean, log_variance = encoder(batch).chunk(2, -1)
            z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
            cost = binary_cross_entropy_with_logits(decoder(z), batch, reduction="sum")
            divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
            loss = (cost + divergence) / len(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
    return total / len(rows)


def pythae_fit(x: np.ndarray, epochs: int) -> float:
    """pythae's own trainer, with the same networks."""
    from pythae.models import VAE as Theirs
    from pythae.models import VAEConfig
    from pythae.models.base.base_utils import ModelOutput
    from pythae.models.nn import BaseDecoder, BaseEncoder
    from pythae.trainers import BaseTrainer, BaseTrainerConfig

    class Encoder(BaseEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU())
            self.head = nn.Linear(200, 100)

        def forward(self, inputs: Any) -> Any:
            mean, log_variance = self.head(self.body(inputs)).chunk(2, -1)
            return ModelOutput(embedding=mean, log_covariance=log_variance)

    class Decoder(BaseDecoder):
        def __init__(self) -> None:
            super().__init__()
            layers = (nn.Linear(50, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 784), nn.Sigmoid())
            self.body = nn.Sequential(*layers)

        def forward(self, code: Any) -> Any:
            return ModelOutput(reconstruction=self.body(code))

    config = VAEConfig(input_dim=(784,), latent_dim=50, reconstruction_loss="bce")
    model = Theirs(config, Encoder(), Decoder())
    with tempfile.TemporaryDirectory() as folder:
        training = BaseTrainerConfig(
            output_dir=folder,
            num_epochs=epochs,
            learning_rate=1e-3,
            per_device_train_batch_size=BATCH,
            optimizer_cls="Adam",
            no_cuda=True,
        )
        trainer = BaseTrainer(model, train_dataset=_dataset(x), training_config=training)
        trainer.train()
    with torch.no_grad():
        return float(model({"data": torch.from_numpy(x[:1000])}).loss)


def _dataset(x: np.ndarray) -> Any:
    from pythae.data.datasets import BaseDataset

    return BaseDataset(torch.from_numpy(x), torch.zeros(len(x)))


if __name__ == "__main__":
    show(run())
