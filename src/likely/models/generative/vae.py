"""VAE: rows from a hidden code by way of a network, and another network that guesses the code of a row.

p(x) = ∫ p(x | z) p(z) dz,    p(x | z) = likelihood( decoder(z) ),    q(z | x) = Normal( encoder(x) )

log p(x)  ≥  E_q[ log p(x | z) ] − KL( q(z | x) ‖ p(z) )
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.draws import count_of
from ...core.errors import DataError, ModelFileError
from ...core.random import isolated
from ...core.spec import as_spec, is_integer, require
from ...inference import MAP, Inference, Problem
from ...likelihoods import Likelihood
from ...networks import MLP
from ...networks.base import as_network
from ...optim import Adam, Cosine
from ...priors import Flat
from .bounds import ELBO, Bound
from .latent_code import _DrawnCode
from .latent_priors import Flow, LatentPrior, Mixture, Normal
from .missing_labels import MissingLabels
from .module import DensityModule, ask
from .pretraining import Pretrained
from .rounding import number_likelihood
from .rows import augmentation
from .vae_module import VAEModule

__all__ = ["VAE"]

DRAWS = 100
"""Draws of the code by which log p(x) is estimated."""
TABLE_STEPS = 1_000
"""Steps of `inference="auto"` on tables, more or less: their mixtures are soon learned by heart."""
FEWEST, FEW = 50, 500
"""Rows from which on some are held out by `inference="auto"`, and below which these are a fifth and not a tenth."""


def _has_groups(model: VAE) -> bool:
    """Whether there is something to predict."""
    if isinstance(model._latent_prior(), Mixture) or ("posterior_" in vars(model) and model._tells_labels()):
        return True
    raise AttributeError(
        "VAE has no groups to predict: fit it with labels as a condition, or with latent_prior=Mixture(k)."
    )


class VAE(_DrawnCode):
    """The variational autoencoder, for tables, arrays and images.

    `likelihood` is that of the columns ("auto", one for all, or one for each); `encoder` and `decoder` are any
    networks. `latent` numbers per code; `levels` codes above each other (a ladder), with networks `between` them.
    `latent_prior` is one of `generative.latent_priors`: "normal"; `Mixture(k)` clusters (VaDE), with `predict` and
    `predict_proba`; `Flow(layers)` is more flexible. "auto" is a flow for tables, whose codes leave gaps that a normal
    would draw from, and "normal" elsewhere. `bound` is what training raises: `ELBO(beta=1)` or `IWAE(k)`. Numbers of
    a table have mixtures of Normals by `likelihood="auto"`, rounded as the data are; those of arrays are `Normal()`.
    Grey pixels between 0 and 1 under `Bernoulli()` are probabilities: binary ones are drawn from them in each batch by
    "auto" (`inference=MAP(augment=Binarise())` says it aloud), and questions take binary ones.

    Missing values do not count in the likelihood, and the encoder is told where they are. With a `condition` in `fit`,
    p(x | condition); labels that are missing there (None) are summed out with a network `classifier`, and `predict`
    then tells labels. `log_prob` is by importance sampling with `draws` codes from q: on average below log p, and
    nearer with more of them (`log_prob_kind_` is "bound"). `impute` and fixed columns in `sample` draw z given what is
    known. With several levels the code that `transform` gives is the lowest one, given the means of those above.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) * [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=(200, 3))
    >>> from likely.inference import MAP
    >>> model = VAE(latent=2, encoder=MLP((16,)), decoder=MLP((16,)), inference=MAP(epochs=20), random_state=0).fit(X)
    >>> model.transform(X).shape, model.sample(4, random_state=0).shape
    ((200, 2), (4, 3))
    >>> model.log_prob(X[:2], draws=50, return_error=True)[1].shape
    (2,)
    """

    log_prob_kind_ = "bound"
    unlabelled_: bool

    def __init__(
        self,
        likelihood: Any = "auto",
        latent: int = 16,
        encoder: Any = MLP((200, 200)),  # noqa: B008 (specs are frozen values)
        decoder: Any = MLP((200, 200)),  # noqa: B008
        latent_prior: Any = "auto",
        bound: Any = ELBO(),  # noqa: B008
        levels: int = 1,
        between: Any = MLP((64,)),  # noqa: B008
        classifier: Any = MLP((200,)),  # noqa: B008
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.latent = latent
        self.encoder = encoder
        self.decoder = decoder
        self.latent_prior = latent_prior
        self.bound = bound
        self.levels = levels
        self.between = between
        self.classifier = classifier
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # --- the model ----------------------------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        require(is_integer(self.latent), self, "latent", "a positive integer")
        require(is_integer(self.levels), self, "levels", "a positive integer")
        self._latent_prior()
        as_spec(self.bound, Bound, "bound")

    def _latent_prior(self) -> LatentPrior:
        if not isinstance(self.latent_prior, str) or self.latent_prior != "auto":
            return as_spec(self.latent_prior, LatentPrior, "latent_prior")
        form = vars(self).get("form_")
        return Flow() if form is not None and form.columns and self.latent > 1 else Normal()

    def _marginalises(self) -> bool:
        return True

    def _number_likelihood(self, column: Tensor) -> Likelihood:
        return number_likelihood(column) if self.form_.columns else super()._number_likelihood(column)

    def _automatic(self, rows: int) -> Inference:
        """Adam along a cosine, and the weights that were best on held-out rows: few rows would be learned by heart."""
        plain = super()._automatic(rows)
        assert isinstance(plain, MAP)
        held_out = None if rows < FEWEST else 0.2 if rows < FEW else 0.1
        patience = None if held_out is None else max(10, plain.epochs // 5)
        if self.form_.columns:
            epochs = max(20, min(2_000, math.ceil(TABLE_STEPS * (plain.batch_size or rows) / rows)))
            plain, patience = plain.replace(epochs=epochs), None
        return plain.replace(optimizer=Adam(2e-3), schedule=Cosine(), validation=held_out, patience=patience)

    def _module(self) -> DensityModule:
        labels = () if self.condition_ is None else self.condition_.labels
        vae = VAEModule(
            self.columns_,
            self.form_.shape,
            None if self.condition_ is None else self.condition_.shape,
            missing=self.missing_,
            latent=self.latent,
            levels=self.levels,
            encoder=self.encoder,
            decoder=self.decoder,
            between=self.between,
            prior=self._latent_prior(),
            bound=as_spec(self.bound, Bound, "bound"),
        )
        if not labels:
            return vae
        return MissingLabels(vae, len(labels), as_network(self.classifier) if self.unlabelled_ else None)

    def fit(self, X: Any, condition: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X: an array (n, d), images (n, c, h, w) or a table; and a condition for each row.

        A label of the condition may be missing (None, or NaN).
        """
        return super().fit(X, condition, sample_weight)

    def _read_condition(self, condition: Any, rows: int, weight: Tensor | None) -> Tensor | None:
        self.unlabelled_ = False
        given = super()._read_condition(condition, rows, weight)
        if given is not None and self._tells_labels():
            self.unlabelled_ = bool((given.sum(-1) == 0).any())
        return given

    def _started(self, problem: Problem, inference: Inference, shown: Tensor) -> Problem:
        prior = self._latent_prior()
        if not isinstance(prior, Mixture):
            return problem
        start = Pretrained(problem, prior.epochs_before(len(shown)), augmentation(inference), shown, prior.corrupt)
        return problem.with_(build=start)

    # --- answers ------------------------------------------------------------------------------------------------
    def _draws(self, draws: int | None) -> int:
        return DRAWS if draws is None else count_of(draws, "draws")

    def _conditions(self, condition: Any, rows: int) -> Tensor | None:
        if condition is None and self.condition_ is not None and self.unlabelled_:
            return torch.zeros(rows, *self.condition_.shape, dtype=torch.float64)
        return super()._conditions(condition, rows)

    @available_if(_has_groups)
    def predict_proba(self, X: Any, condition: Any = None) -> np.ndarray:
        """The probability of each group: labels of the condition, or components of a mixture prior; (n, groups).

        Labels are those of q(y | x) where training had missing ones, and else by Bayes' rule from log p(x | y). Columns
        are in the order of `classes_`.
        """
        check_is_fitted(self)
        if self._tells_labels():
            if condition is not None:
                raise DataError("predict tells labels of the condition, so it takes none.")
            x = self._placed(self._only_rows(X))
            return self._averaged("label_probabilities", x, lambda rows: (x[rows], DRAWS))
        x, given = self._asked(X, condition)
        return self._averaged("clusters", x, lambda rows: (x[rows], *(() if given is None else (given[rows],))))

    @available_if(_has_groups)
    def predict(self, X: Any, condition: Any = None) -> np.ndarray:
        """The most probable group of each row: a label of the condition, or the index of a component."""
        return self.classes_[self.predict_proba(X, condition).argmax(-1)]

    @property
    def classes_(self) -> np.ndarray:
        """What `predict` may answer."""
        check_is_fitted(self)
        if self._tells_labels():
            assert self.condition_ is not None
            return np.array(self.condition_.labels)
        return np.arange(self._latent_prior().components)  # type: ignore[attr-defined]

    def _tells_labels(self) -> bool:
        return self.condition_ is not None and bool(self.condition_.labels)

    def _only_rows(self, X: Any) -> Tensor:
        x = self.form_.rows(self, X)
        self.columns_.check(x.flatten(1))
        return x

    def _averaged(self, method: str, x: Tensor, arguments: Any) -> np.ndarray:
        """Probabilities from all members, in blocks of rows."""
        draws = DRAWS if self._tells_labels() else 1

        def answer(rows: slice, member: int) -> Tensor:
            return self._cpu(ask(self.posterior_, member, method, *arguments(rows)))

        total = 0.0
        for member, weight in enumerate(self.posterior_.weights.tolist()):
            with isolated(self._seed_of_question(None, member)):
                parts = self._in_blocks(len(x), partial(answer, member=member), draws=draws)
            total = total + weight * parts.numpy()
        return np.asarray(total)

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super()._state()
        return {**learned, "unlabelled": self.unlabelled_}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.unlabelled_ = learned["unlabelled"]
        if not isinstance(self.unlabelled_, bool):
            raise ModelFileError(f"The file says unlabelled={self.unlabelled_!r}, which is neither true nor false.")
        super()._restore(learned, tensors)
