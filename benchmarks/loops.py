"""The training loops that a user of PyTorch, skorch, Lightning or Keras would write, for the same network and steps."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

__all__ = ["keras_fit", "lightning_fit", "network", "predict_module", "skorch_fit", "torch_fit"]

Build = Callable[[], nn.Module]
"""Makes the network to train."""


Loss = Callable[[Tensor, Tensor], Tensor]
"""The mean loss of outputs given targets."""


def network(inputs: int, hidden: int, outputs: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """One hidden layer; a single output is a number per row."""
    last = [nn.Flatten(0)] if outputs == 1 else []
    return nn.Sequential(nn.Linear(inputs, hidden), activation(), nn.Linear(hidden, outputs), *last)


def torch_fit(
    build: Build,
    x: np.ndarray,
    y: np.ndarray,
    batch: int,
    epochs: int,
    *,
    fused: bool = False,
    seed: int = 0,
    loss_of: Loss = nn.functional.cross_entropy,
) -> nn.Module:
    """The loop by hand: batches by `index_select` from one shuffled order, Adam as it comes (or its fused kernel)."""
    torch.manual_seed(seed)
    rows, targets = torch.from_numpy(x), torch.from_numpy(y)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused or None)
    for _ in range(epochs):
        for index in torch.randperm(len(rows)).split(batch):
            optimizer.zero_grad()
            loss = loss_of(model(rows.index_select(0, index)), targets.index_select(0, index))
            loss.backward()
            optimizer.step()
    return model


def skorch_fit(build: Build, x: np.ndarray, y: np.ndarray, batch: int, epochs: int) -> nn.Module:
    """skorch without a validation split and without printing."""
    from skorch import NeuralNetClassifier

    torch.manual_seed(0)
    model = NeuralNetClassifier(
        build(),
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=1e-3,
        batch_size=batch,
        max_epochs=epochs,
        train_split=None,
        iterator_train__shuffle=True,
        verbose=0,
    )
    return model.fit(x, y).module_


def lightning_fit(build: Build, x: np.ndarray, y: np.ndarray, batch: int, epochs: int) -> nn.Module:
    """Lightning over a DataLoader, with logging, checkpoints, summary and progress bar off."""
    import lightning

    class Module(lightning.LightningModule):
        """The network, its loss and its optimiser."""

        def __init__(self) -> None:
            super().__init__()
            self.network = build()

        def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
            rows, targets = batch
            return nn.functional.cross_entropy(self.network(rows), targets)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    torch.manual_seed(0)
    module = Module()
    loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), batch_size=batch, shuffle=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module, loader)
    return module.network.eval()


def keras_fit(build: Build, x: np.ndarray, y: np.ndarray, batch: int, epochs: int) -> nn.Module:
    """Keras on its torch backend, around the same module, without printing."""
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    torch.manual_seed(0)
    module = build()
    model = keras.Sequential([keras.Input(x.shape[1:]), keras.layers.TorchModuleWrapper(module)])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=keras.losses.SparseCategoricalCrossentropy(True))
    model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0)
    return module.eval()


@torch.no_grad()
def predict_module(module: nn.Module, x: np.ndarray) -> np.ndarray:
    """The most probable classes, or the outputs where there is one per row."""
    outputs = module(torch.from_numpy(x))
    return (outputs.argmax(1) if outputs.ndim > 1 else outputs).numpy()
