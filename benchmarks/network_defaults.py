"""Convolutions, recurrences and graphs at their defaults, beside the first examples of Keras and PyTorch Geometric.

The peers are trained as their examples say. Keras on MNIST: convolutions of 32 and 64 maps, dropout 0.5, batches of
128, 15 epochs of Adam. Keras on texts: vectors of 128, two bidirectional LSTMs of 64, batches of 32, 2 epochs; here on
SST-2, words that are there twice or more. PyTorch Geometric on Cora: 16 units, dropout 0.5, Adam(0.01) with decay 5e-4
in the first layer, 200 epochs. We say only which network; the best epoch is chosen by held-out training rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import torch

from likely import Classifier
from likely.data.text import Words
from likely.networks import GCN, LSTM, ConvNet

from .cora import Cora, accuracy, cora
from .datasets import mnist
from .masked_words import Reviews, read
from .timing import Result, show

__all__ = ["run"]

IMAGES = 10_000
SEEDS = 5
Fit = Callable[[int], float]


def run(repeats: int = SEEDS) -> list[Result]:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    return [images(max(1, repeats // 2)), texts(max(1, repeats // 2)), nodes(repeats)]


def images(seeds: int) -> Result:
    """Errors on 10,000 digits after 10,000."""
    data = mnist(IMAGES)
    x, new = (part.reshape(-1, 1, 28, 28) for part in (data.x, data.x_test))

    def ours(seed: int) -> float:
        return float(Classifier(network=ConvNet(), random_state=seed).fit(x, data.y).score(new, data.y_test))

    def example(seed: int) -> float:
        import keras

        keras.utils.set_random_seed(seed)
        own, held = (np.moveaxis(part, 1, -1) for part in (x, new))
        layers = keras.layers
        model = keras.Sequential(
            [
                keras.Input(own.shape[1:]),
                layers.Conv2D(32, 3, activation="relu"),
                layers.MaxPooling2D(2),
                layers.Conv2D(64, 3, activation="relu"),
                layers.MaxPooling2D(2),
                layers.Flatten(),
                layers.Dropout(0.5),
                layers.Dense(10, activation="softmax"),
            ]
        )
        model.compile(loss="sparse_categorical_crossentropy", optimizer="adam")
        model.fit(own, data.y, batch_size=128, epochs=15, validation_split=0.1, verbose=0)
        return float((model.predict(held, verbose=0).argmax(1) == data.y_test).mean())

    return judged(f"ConvNet() by default, {data.source}, {IMAGES:,} images", "Keras' example", ours, example, seeds)


def texts(seeds: int) -> Result:
    """Errors on the test sentences of SST-2 after its 6,920."""
    train, test = read("train"), read("test")

    def ours(seed: int) -> float:
        model = Classifier(network=LSTM(), tokens=Words(min_count=2), random_state=seed)
        return float(model.fit(train.texts, train.labels).score(test.texts, test.labels))

    return judged("LSTM() by default, SST-2", "Keras' example", ours, lambda seed: _sentences(train, test, seed), seeds)


def _sentences(train: Reviews, test: Reviews, seed: int) -> float:
    import keras

    keras.utils.set_random_seed(seed)
    vocabulary = Words(min_count=2).fit(train.texts)
    coded = [[vocabulary.encode(text) + 1 for text in part.texts] for part in (train, test)]
    longest = max(len(row) for part in coded for row in part)
    known, new = (keras.utils.pad_sequences(part, maxlen=longest) for part in coded)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Embedding(vocabulary.size + 2, 128),
            layers.Bidirectional(layers.LSTM(64, return_sequences=True)),
            layers.Bidirectional(layers.LSTM(64)),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy")
    model.fit(known, train.labels, batch_size=32, epochs=2, verbose=0)
    return float(((model.predict(new, verbose=0)[:, 0] > 0.5) == test.labels).mean())


def nodes(seeds: int) -> Result:
    """Errors on the 1,000 test papers of Cora after 140."""
    data = cora()

    def ours(seed: int) -> float:
        model = Classifier(network=GCN(), random_state=seed, missing_label=-1)
        return accuracy(data, model.fit(data.graph, data.known))

    return judged(
        "GCN() by default, Cora", "PyTorch Geometric's example", ours, lambda seed: _papers(data, seed), seeds
    )


def _papers(data: Cora, seed: int) -> float:
    from torch.nn import functional
    from torch_geometric.nn import GCNConv

    torch.manual_seed(seed)
    x, edges = (torch.as_tensor(np.asarray(own)) for own in (data.graph.features, data.graph.edges))
    y = torch.from_numpy(data.y)
    first, second = GCNConv(x.shape[1], 16, cached=True), GCNConv(16, int(y.max()) + 1, cached=True)
    optimizer = torch.optim.Adam(
        [{"params": first.parameters(), "weight_decay": 5e-4}, {"params": second.parameters()}], lr=0.01
    )

    def logits(training: bool) -> torch.Tensor:
        hidden = functional.relu(first(functional.dropout(x, 0.5, training), edges))
        return second(functional.dropout(hidden, 0.5, training), edges)

    for _ in range(200):
        optimizer.zero_grad()
        functional.cross_entropy(logits(True)[data.train], y[data.train]).backward()
        optimizer.step()
    with torch.no_grad():
        return float((logits(False).argmax(1)[data.test] == y[data.test]).float().mean())


def judged(name: str, peer: str, ours: Fit, example: Fit, seeds: int) -> Result:
    """Mean errors over seeds; ours may be behind by two standard errors of the difference."""
    right, seconds = np.zeros((2, seeds)), np.zeros((2, seeds))
    for seed in range(seeds):
        for side, fit in enumerate((ours, example)):
            start = time.process_time()
            right[side, seed] = fit(seed)
            seconds[side, seed] = time.process_time() - start
    means = right.mean(1)
    spread = float(np.sqrt(right.var(1, ddof=1).sum() / seeds)) if seeds > 1 else 0.0
    words = (
        f"right {means[0]:.4f} and {means[1]:.4f}, standard error of the difference {spread:.4f}, {seeds} seeds; "
        f"{seconds[0].mean():.0f} and {seconds[1].mean():.0f} s of CPU"
    )
    level = bool(means[0] >= means[1] - 2 * spread)
    return Result(name, peer, 1 - means[0], 1 - means[1], words, level, None, "error")


if __name__ == "__main__":
    show(run())
