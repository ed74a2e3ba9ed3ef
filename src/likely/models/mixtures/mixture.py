"""Mixture: rows that come from K groups nobody has labelled, each with a distribution of any likelihood.

    p(x) = Σₖ πₖ p(x | ηₖ)

Found by EM: the estimate of each component is the likelihood's own, from rows weighted by responsibilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, distributions

from ...core.declared import COUNTS, FIT, FORM, HISTORY, SIMPLEX, TABLE, Array, Arrays, Range, Values
from ...core.errors import SpecError
from ...inference import EM, Inference
from ...inference.latent.latent import Params
from ...likelihoods import Normal
from ..averaged import INFO
from ..emissions import Columns, Part
from ..emissions.starts import Init
from .components import Components
from .finite_mixture import _FiniteMixture, listed, require_number

__all__ = ["Mixture"]


class Mixture(_FiniteMixture):
    """Mixture(likelihood=Normal(), n_components=2): K groups of rows, of any likelihood.

    `likelihood` is one for all columns, a list with one for each, a dict by column name, or a `Product`; columns are
    independent given the component, except those of a vector likelihood. `init` is how first guesses are made, and
    `EM(starts=5)` keeps the best of five. Any other inference of densities will do as well: `HMC()` draws parameters,
    and `log_prob` averages over them; `prior` then speaks of η in units of the data. `smoothing` is how many rows'
    worth of the whole data each component sees beside its own: it holds components that would shrink to a point
    (listed in `held_`).

    >>> from likely.likelihoods import Poisson
    >>> model = Mixture(Poisson(), n_components=2, random_state=0).fit([[1], [2], [0], [20], [22], [18]])
    >>> model.predict([[1], [19]]) == model.predict([[0], [25]])
    array([ True,  True])
    >>> sorted(float(component.rate.round(decimals=2)) for component in model.distributions_)
    [1.0, 20.0]
    """

    _arrays: ClassVar[Arrays] = {"weights_": Array("K", SIMPLEX), "eta_": Array("K *"), "history_": HISTORY}
    _values: ClassVar[Values] = {"emission_": TABLE, **FIT, **INFO, "held_": COUNTS, "reseeded_": TABLE, "form_": FORM}

    def __init__(
        self,
        likelihood: Any = Normal(),  # noqa: B008 (specs are frozen values)
        n_components: int = 2,
        inference: Inference | str = EM(),  # noqa: B008
        init: Init = "k-means++",
        smoothing: float = 1e-6,
        prior: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.n_components = n_components
        self.inference = inference
        self.init = init
        self.smoothing = smoothing
        self.prior = prior
        self.random_state = random_state
        self.verbose = verbose

    # --- answers ------------------------------------------------------------------------------------------------
    @property
    def distributions_(self) -> list[Any]:
        """The distribution of each component: of one likelihood, or of each of several by their columns' names."""
        self._check_fitted()
        shown = [str(name) for name in getattr(self, "feature_names_in_", range(self.n_features_in_))]
        parts = self._parts()
        components: list[Any] = []
        for k in range(self.n_components):
            joints = [_joint(part, eta[k]) for part, eta in parts]
            names = [", ".join(shown[part.columns]) for part, _ in parts]
            components.append(joints[0] if len(joints) == 1 else dict(zip(names, joints, strict=True)))
        return components

    def distribution(self) -> distributions.MixtureSameFamily:
        """The fitted p(x) as a torch distribution, where all columns have the same likelihood."""
        self._check_fitted()
        parts = self._parts()
        if len(parts) > 1:
            raise SpecError("The columns have several likelihoods: torch has no such mixture; use `distributions_`.")
        weights = distributions.Categorical(torch.from_numpy(self.weights_))
        return distributions.MixtureSameFamily(weights, _joint(*parts[0]))

    def _parts(self) -> list[tuple[Part, Tensor]]:
        """Each part of the columns, with its η (K, size)."""
        columns = Columns.from_json(self.emission_)
        return list(zip(columns.parts, columns._split(torch.from_numpy(self.eta_)), strict=True))

    # --- what makes it a mixture --------------------------------------------------------------------------------
    def _emission(self, x: Tensor, names: Sequence[str] | None = None) -> Columns:
        return Columns.of(self.likelihood, x, names, self.smoothing)

    def _fitted(self) -> tuple[Columns, Params]:
        params = {name: value.unsqueeze(0) for name, value in self._point().items()}
        return Columns.from_json(self.emission_), params

    def _point(self) -> Params:
        return {"weights": torch.from_numpy(self.weights_), "eta": torch.from_numpy(self.eta_)}

    def _draw_ranges(self) -> dict[str, Range]:
        return {"weights": SIMPLEX}

    def _keep(self, model: Components, params: Params) -> None:
        self.eta_ = params["eta"][0].numpy()
        self.emission_ = model.emission.to_json()
        self.held_ = model.held(params) if self.smoothing > 0 else []
        if self.held_:
            self._report(
                f"smoothing={self.smoothing:g} alone holds up {listed(self.held_)}: it has shrunk to a point or has "
                "no rows. Fewer components, more smoothing or other first guesses may do."
            )

    def _check_arguments(self) -> None:
        super()._check_arguments()
        require_number(self, "smoothing")


def _joint(part: Part, eta: Tensor) -> distributions.Distribution:
    """The distribution of all columns of a part; one number if it has one column."""
    columns = part.likelihood.distribution(part.split(eta))
    if part.count > 1:
        return distributions.Independent(columns, 1)
    return part.likelihood.distribution(part.split(eta)[..., 0, :])
