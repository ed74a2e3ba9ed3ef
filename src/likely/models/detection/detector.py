"""Detector: what is where in an image, as targets of the cells of grids.

p(boxes | x) = Π_cells p(presence, class, edges | η(x; θ)),   θ ~ prior,   θ found by inference
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import constraints

from ...core import distributed
from ...core.draws import count_of
from ...core.errors import DataError, SpecError, TrainingError
from ...core.estimator import Estimator
from ...core.random import isolated, seed_of
from ...core.spec import as_spec, is_integer
from ...core.threads import footprint, threads_for
from ...core.validation import as_weights, device_of
from ...inference import EMA, MAP, Inference, Posterior, Problem
from ...inference.dataset import Batch, Dataset
from ...inference.objective import refuse
from ...inference.work import rows_per_step
from ...likelihoods import Laplace, Likelihood, Product
from ...likelihoods.base import Target
from ...networks import Network
from ...networks.base import as_network
from ...networks.layers.standardise import Standardise, Statistics, statistics
from ...networks.u_net import UNet
from ...optim import AdamW, Cosine
from ...priors import Flat, Prior
from ..reports import Reports
from .augmenting import moving_boxes
from .cells import CellObjective, cell_likelihood, cell_targets, check_room
from .detections import Detections, decided, drawn, seen
from .files import restore, state_of
from .module import CellNetwork, layout_of
from .objects import as_objects, classes_among, read_boxes, read_images, read_labels
from .start import base_rates

__all__ = ["Detector"]

STEPS = 1_500
"""Steps of training that `inference="auto"` takes, more or less: so many do for a few hundred photographs."""
SAMPLE, LEAST = 1 << 23, 64
"""Numbers of images, or of their cells, that base rates and units are taken of; but of no fewer images than that."""
BLOCK = 1 << 24
"""Numbers that a block of images may have in the widest layer, over all members."""


class Detector(Reports, Estimator):
    """Boxes around the objects in images, each with its class, a probability, and how sure every edge is.

    Images are (n, channels, height, width), or grey ones (n, height, width), in any units: they are standardised by
    channel. Boxes are a list with an array (k, 4) for each image: xmin, ymin, xmax, ymax in pixels; labels are a list
    with k labels for each (one class, if there are none). An image may have no box.

    The `network` gives a map of features: `ConvNet`, `ResNet`, `UNet`, `ViT`, or a module of your own. There is a grid
    for each of `strides`, the side of its cells in pixels. A box belongs to the cell with its centre, on the finest
    grid where it is at most 8 cells long. Each cell has an object with a probability (Bernoulli), which is of a class
    (Categorical), and each edge of its box is as the likelihood `edge` says, in logarithms of its distance from the
    cell. What `log_prob` gives is the sum over cells. See `grids`, `cells` and `detections` beside this file.

    `fit` trains by any inference: with `Ensemble` or `MCDropout`, answers are averages, and edges are less sure where
    members disagree. In `MAP(augment=Flip() + Crop(8))` boxes move with their images.

    >>> from likely.networks import ResNet
    >>> from likely.optim import Adam
    >>> rng = np.random.default_rng(0)
    >>> images, boxes = rng.normal(size=(40, 16, 16)), []
    >>> for image, (x, y) in zip(images, rng.integers(0, 10, (40, 2))):
    ...     image[y : y + 6, x : x + 6] += 4
    ...     boxes.append([[x, y, x + 6, y + 6]])
    >>> model = Detector(ResNet((8, 16), blocks=1), strides=(4,), inference=MAP(Adam(0.01), epochs=20, batch_size=8))
    >>> model.set_params(random_state=0).fit(images, boxes).detect(images[:1])[0]
    Detections(object ...)
    """

    log_prob_kind_: ClassVar[str] = "exact"
    objective_: CellObjective
    posterior_: Posterior
    classes_: np.ndarray

    def __init__(
        self,
        network: Any = UNet((24, 48, 96), patch=2),  # noqa: B008 (a frozen value)
        strides: tuple[int, ...] = (4, 8, 16),
        edge: Any = Laplace("input"),  # noqa: B008 (a frozen value)
        prior: Any = Flat(),  # noqa: B008 (a frozen value)
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.network = network
        self.strides = strides
        self.edge = edge
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, X: Any, boxes: Any, labels: Any = None, sample_weight: Any = None) -> Self:
        """Learn θ from images, their boxes and the boxes' labels; `sample_weight` has a number for each image.

        An image of weight 2 is the image twice: exactly with full batches, with others on average over their draw.
        """
        for name in ("posterior_", "_costs"):
            self.__dict__.pop(name, None)
        x = read_images(X)
        there = read_boxes(boxes, x)
        words = read_labels(labels, there)
        self.classes_ = classes_among(words)
        self.in_shape_ = tuple(x.shape[1:])
        self._prepare()
        objects = as_objects(there, words, self.classes_)
        weight = as_weights(sample_weight, x)
        inference, device = self._inference(len(x)), device_of(self.device)
        start = self._start(x, objects, weight)
        problem = Problem(
            build=lambda seed: self._module(seed, *start),
            objective=self.objective_,
            prior=as_spec(self.prior, Prior, "prior"),
            data=self._dataset(x, objects, weight, inference.dtype, device),
            seed=distributed.agreed(seed_of(self.random_state)),
            seeded=self.random_state is not None,
            encode=lambda X, y, w: self._encoded(X, y, w, inference.dtype, device),
            title=type(self).__name__,
            verbose=bool(self.verbose),
        )
        refuse(inference, problem.objective)
        with threads_for(self._footprint()[0] * rows_per_step(inference, len(x))):
            posterior = inference.fit(problem)
        for name, value in posterior.parameters.items():
            if not bool(value.isfinite().all()):
                raise TrainingError(f"The fit ended with parameters that are not finite ({name}); try a smaller rate.")
        self.posterior_ = posterior
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in self.__dict__

    def _prepare(self) -> None:
        """What follows from the arguments, the shape of an image and the classes."""
        strides = self.strides
        whole = isinstance(strides, tuple | list) and strides and all(is_integer(stride) for stride in strides)
        if not whole or list(strides) != sorted(set(strides)):
            raise SpecError(f"strides={strides!r} must be rising integers, 1 or more, such as (4, 8, 16).")
        edge = as_spec(self.edge, Likelihood, "edge")
        if edge.event_dim or edge.labels or not edge.numeric or edge.shared(Target()):
            raise SpecError(f'edge={edge!r} must be a likelihood of one number with its own scale: Laplace("input").')
        if edge.support is not constraints.real:
            raise SpecError(
                f"edge={edge!r} is a likelihood of {edge.needs}, and the logarithm of a distance may be any real "
                'number; use Laplace("input"), Normal("input") or StudentT(scale="input").'
            )
        self.layout_ = layout_of(self._network(), self.in_shape_, tuple(strides))
        likelihood = cell_likelihood(len(self.classes_), edge)
        self.objective_ = CellObjective(likelihood, tuple(strides), self.layout_.multiple)

    def _network(self) -> Network:
        return as_network(self.network)

    @property
    def likelihood_(self) -> Product:
        """p(target of one cell | η)."""
        return self.objective_.likelihood

    def _inference(self, rows: int) -> Inference:
        if isinstance(self.inference, str) and self.inference == "auto":
            batch = min(8, max(1, rows // 4))
            epochs = max(10, min(300, STEPS * batch // rows))
            return MAP(AdamW(3e-3), epochs, batch, schedule=Cosine(), clip_norm=200.0, average=EMA(0.99))
        return moving_boxes(as_spec(self.inference, Inference, "inference"))

    def _start(self, x: Tensor, objects: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Statistics | None]:
        """Offsets and units of η, and the units of images, each of which counts as often as its weight."""
        grids = self.objective_.grids(x)
        check_room(grids, objects)
        if weight is not None and not bool(weight.all()):
            x, objects, weight = (part[weight > 0] for part in (x, objects, weight))
        there = (~objects[..., 0].isnan()).any(1)
        if not bool(there.any()):
            raise DataError("No image with a box has weight: sample_weight is 0 for all of them.")
        few, some = _spaced(len(x), grids.count, there), _spaced(len(x), x[0].numel())
        targets, _ = cell_targets(grids, objects[few], len(self.classes_))
        offset, unit = base_rates(self.likelihood_, targets, grids, None if weight is None else weight[few])
        columns = self._network().columns(self.in_shape_)
        return offset, unit, statistics(x[some], columns, None if weight is None else weight[some])

    def _module(self, seed: int, offset: Tensor, unit: Tensor, inputs: Statistics | None) -> CellNetwork:
        standard = None if inputs is None else Standardise(*inputs)
        with isolated(seed):
            body = self._network().body(self._padded(self.in_shape_))
            return CellNetwork(body, self.layout_, tuple(self.strides), offset, unit, standard)

    def _padded(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        multiple = self.layout_.multiple
        return (shape[0], *(-(-side // multiple) * multiple for side in shape[1:]))

    def _dataset(self, x: Tensor, objects: Tensor, weight: Tensor | None, dtype: torch.dtype, device: Any) -> Dataset:
        weight = None if weight is None else weight.to(device, dtype)
        return Dataset(x.to(device), objects.to(device, dtype), weight, dtype, whole=True)

    def _encoded(self, X: Any, y: Any, weight: Any, dtype: torch.dtype, device: Any) -> Dataset:
        """Held-out images: `validation=(images, (boxes, labels))`, or `(images, boxes)` where there is one class."""
        x = read_images(X, self.in_shape_[0])
        boxes, labels = y if isinstance(y, tuple) and len(y) == 2 else (y, None)
        return self._dataset(x, self._objects(x, boxes, labels), as_weights(weight, x), dtype, device)

    def _objects(self, x: Tensor, boxes: Any, labels: Any) -> Tensor:
        there = read_boxes(boxes, x)
        if labels is None and len(self.classes_) == 1:
            words = [np.full(len(own), self.classes_[0]) for own in there]
        else:
            words = read_labels(labels, there)
        objects = as_objects(there, words, self.classes_)
        check_room(self.objective_.grids(x), objects)
        return objects

    def _footprint(self) -> tuple[int, int]:
        """Multiply-adds of the largest operation, and numbers in the widest layer, for one image."""
        known = self.__dict__.get("_costs")
        if known is None:
            size = self.likelihood_.size(self.likelihood_.known_target() or Target())
            offset = torch.zeros(len(self.strides), size)
            module = self._module(0, offset, torch.ones(size), None).eval()
            known = self.__dict__["_costs"] = tuple(footprint(module, torch.zeros(1, *self.in_shape_)))
        return known

    # --- questions ----------------------------------------------------------------------------------------------
    def detect(self, X: Any, threshold: float = 0.5, overlap: float = 0.5, most: int = 100) -> list[Detections]:
        """The objects in each image that are at least as probable as `threshold`, the most probable first.

        Boxes of one class whose IoU is above `overlap` are one object; an image has at most so many. Images may be of
        another size than those in `fit`, where the network allows it.
        """
        for name, value in (("threshold", threshold), ("overlap", overlap)):
            if not isinstance(value, Real) or not 0 <= value <= 1:
                raise DataError(f"{name}={value!r} must be a number between 0 and 1.")
        if not is_integer(most):
            raise DataError(f"most={most!r} must be an integer, 1 or more.")
        answers = []
        for x, eta, weights in self._etas(self._images(X)):
            cells = seen(self.likelihood_, self.objective_.grids(x), eta, weights)
            for parts in decided(*cells, threshold=threshold, overlap=overlap, most=most):
                boxes, label, probabilities, scales = (part.double().cpu().numpy() for part in parts)
                height, width = x.shape[-2:]
                inside = np.clip(boxes, 0, [width, height, width, height])
                answers.append(Detections(inside, self.classes_[label.astype(int)], probabilities, scales))
        return answers

    def predict(self, X: Any) -> list[Detections]:
        """What `detect` gives, with its defaults."""
        return self.detect(X)

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw n sets of objects for each image from p(boxes, labels | x, data): an array (n, images) of `Detections`.

        A draw has a box with a class wherever a cell drew one, with probability 1 and scales of 0. The boxes of an
        image differ from draw to draw as far as the model is unsure of them; no two are taken for one, as in `detect`.
        """
        count, x = count_of(n), self._images(X)
        answers = np.empty((count, len(x)), dtype=object)
        done = 0
        with isolated(self._seed(random_state)):
            for images, eta, weights in self._etas(x):
                grids, sides = self.objective_.grids(images), (images.shape[-2], images.shape[-1])
                for draw in range(count):
                    parts = drawn(self.likelihood_, grids, eta, weights, sides)
                    for image, (boxes, labels) in enumerate(parts):
                        answers[draw, done + image] = self._certain(boxes, labels)
                done += len(images)
        return answers

    def _certain(self, boxes: Tensor, labels: Tensor) -> Detections:
        edges = boxes.double().cpu().numpy()
        return Detections(edges, self.classes_[labels.cpu().numpy()], np.ones(len(edges)), np.zeros_like(edges))

    @torch.no_grad()
    def log_prob(self, X: Any, boxes: Any, labels: Any = None) -> np.ndarray:
        """log p(boxes and labels | x, data) of each image: the sum over its cells, of edges as densities per pixel."""
        answers, done, images = [], 0, self._images(X)
        objects = self._objects(images, boxes, labels)
        for x, eta, weights in self._etas(images):
            own = objects[done : done + len(x)].to(eta)
            done += len(x)
            log_prob, jacobian = self.objective_.cell_log_prob(eta, Batch(x, own, None))
            cells = torch.logsumexp(log_prob + weights.to(eta).log().view(-1, 1, 1), 0)
            answers.append((cells.double().sum(-1) + jacobian).cpu().numpy())
        return np.concatenate(answers)

    def score(self, X: Any, boxes: Any, labels: Any = None, sample_weight: Any = None) -> float:
        """The mean of `log_prob` over images; `evaluate.average_precision` is the measure of benchmarks."""
        log_prob = self.log_prob(X, boxes, labels)
        weight = as_weights(sample_weight, log_prob)
        return float(np.average(log_prob, weights=None if weight is None else weight.numpy()))

    def _images(self, X: Any) -> Tensor:
        check_is_fitted(self)
        x = read_images(X, self.in_shape_[0])
        if tuple(x.shape[1:]) != self.in_shape_:
            self._check_size(tuple(x.shape[1:]))
        return x

    def _check_size(self, shape: tuple[int, ...]) -> None:
        """Raise a `DataError` unless the network for images of this shape has the parameters of the fitted one."""
        try:
            with isolated(0):
                body = self._network().body(self._padded(shape))
            sizes = {f"network.{name}": value.shape for name, value in body.named_parameters()}
        except SpecError:
            sizes = {}
        fitted = self.posterior_.parameters
        if not sizes or any(name not in fitted or fitted[name].shape[1:] != size for name, size in sizes.items()):
            raise DataError(
                f"X has images of {shape[1:]} pixels; {self._network()!r} was fitted on {self.in_shape_[1:]} and "
                "answers for those alone."
            )

    @torch.no_grad()
    def _etas(self, x: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Blocks of images with η of every member, (members, n, count, size), and the members' weights."""
        work, width = self._footprint()
        grown = max(1, x[0].numel() // int(np.prod(self.in_shape_)))
        members = len(self.posterior_.weights)
        step = max(1, BLOCK // (members * width * grown))
        with threads_for(work * min(step, len(x))):
            for part in x.split(step):
                part = part.to(self.posterior_.weights.device)
                yield part, *self.posterior_.members(part)

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return state_of(self)

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        restore(self, learned, tensors)


def _spaced(rows: int, size: int, there: Tensor | None = None) -> Tensor:
    """Rows at equal distances, as many as have `SAMPLE` numbers of this size each; one at least is among those `there`.

    >>> _spaced(1000, SAMPLE // 100).tolist()[:3]
    [0, 10, 20]
    """
    step = max(1, rows // max(LEAST, SAMPLE // size))
    chosen = torch.arange(0, rows, step)
    if there is not None and not bool(there[chosen].any()):
        chosen = torch.cat([chosen, there.nonzero()[:1, 0]])
    return chosen
