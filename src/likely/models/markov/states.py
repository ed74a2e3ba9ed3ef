"""What a hidden Markov model knows of the states of sequences: paths, posteriors, forecasts, what is missing."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch.distributions import Categorical

from ...core.draws import count_of
from ...core.errors import DataError, SpecError
from ...core.random import isolated, spread
from ...core.threads import threads_for
from ...data.rows import Ragged
from ...data.sequences import read_sequences
from ...inference.latent.latent import Params
from ..averaged import Averaged
from ..emissions.mixture import rebuild
from . import filter_states, forward_backward, sample_paths, sample_states, viterbi
from .emission import state_means

__all__: list[str] = []


class _HiddenStates(Averaged):
    """Answers of a fitted chain: initial π (K,), transition A (K, K), and the emission p(xₜ | zₜ).

    Each takes one sequence, a list of them, or rows with their `lengths`, and answers in the same form.
    """

    initial_: np.ndarray
    transition_: np.ndarray
    emission_: dict[str, Any]
    _learned_emission: dict[str, np.ndarray]

    def decode(
        self,
        X: Any,
        lengths: Any = None,
        *,
        method: Literal["viterbi", "posterior"] = "viterbi",
        return_log_prob: bool = False,
    ) -> Any:
        """States (T,): of the most probable path ("viterbi"), or the most probable of each step ("posterior").

        With `return_log_prob` also log p(x, states) of each sequence.
        """
        if method not in ("viterbi", "posterior"):
            raise SpecError(f'method={method!r}: decode by "viterbi" or "posterior".')
        data, log_emission = self._emitted(X, lengths)
        chain = (self.initial_, self.transition_, log_emission, data.offsets.numpy())
        if method == "viterbi":
            path, log_prob = viterbi(*chain)
            if (log_prob == -np.inf).any():
                self._refuse(filter_states(*chain)[2])
        else:
            path = self._smoothed(data, log_emission).argmax(1)
            log_prob = _path_log_prob(path, *chain)
        states = data.parted(path)
        return (states, log_prob) if return_log_prob else states

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The most probable path of states, by Viterbi: (T,) for each sequence."""
        return self.decode(X, lengths)

    def posterior(self, X: Any, lengths: Any = None) -> Any:
        """The distribution of the state of each step given its sequence: a torch `Categorical` with batch (T,).

        Of a list of sequences, a list.
        """
        probabilities = self.predict_proba(X, lengths)
        if isinstance(probabilities, list):
            return [Categorical(torch.from_numpy(own), validate_args=False) for own in probabilities]
        return Categorical(torch.from_numpy(probabilities), validate_args=False)

    def predict_proba(self, X: Any, lengths: Any = None) -> Any:
        """p(zₜ = k | x), given the whole sequence: (T, K) for each sequence."""
        data, log_emission = self._emitted(X, lengths)
        return data.parted(self._smoothed(data, log_emission))

    def filter(self, X: Any, lengths: Any = None) -> Any:
        """p(zₜ = k | x₁ … xₜ), given what was seen until then: (T, K) for each sequence."""
        data, _, filtered, impossible = self._filtered(X, lengths)
        self._refuse(impossible)
        return data.parted(filtered)

    def forecast_states(self, X: Any, steps: int, lengths: Any = None) -> Any:
        """p(z_{T+h} = k | x) for h = 1 … `steps` after each sequence: (steps, K), or (n, steps, K) for several."""
        if not isinstance(steps, int | np.integer) or steps < 1:
            raise DataError(f"steps={steps!r}: how far to look ahead must be an integer above 0.")
        data, _, filtered, impossible = self._filtered(X, lengths)
        self._refuse(impossible)
        now, following = filtered[data.offsets.numpy()[1:] - 1], []
        for _ in range(steps):
            now = now @ self.transition_
            following.append(now)
        ahead = np.stack(following, 1)
        return ahead if data.listed or lengths is not None else ahead[0]

    def forecast(self, X: Any, steps: int, lengths: Any = None) -> Any:
        """The mean of each column, 1 … `steps` steps after each sequence: (steps, d), or (n, steps, d) for several."""
        means = self.means_
        return self.forecast_states(X, steps, lengths) @ means

    def sample(
        self,
        n: int = 1,
        condition: Any = None,
        random_state: Any = None,
        *,
        length: int = 100,
        return_hidden: bool = False,
    ) -> Any:
        """n new sequences of `length` steps, (n, length, d); with `return_hidden` also their states (n, length).

        With a sequence as `condition`, what may follow it.
        """
        self._check_fitted()
        shape, seed = (count_of(n), count_of(length, "length")), self._seed(random_state)
        first = self.initial_
        if condition is not None:
            data, _, filtered, impossible = self._filtered(condition, None)
            self._refuse(impossible)
            if len(data) > 1:
                raise DataError(f"condition has {len(data)} sequences; a sample continues one.")
            first = filtered[-1] @ self.transition_
        uniform = np.random.default_rng(seed).random(shape)
        chosen, draws = self._members_of(shape[0], seed), self._draws()
        if condition is not None or chosen is None or draws is None:
            states, params = sample_states(first, self.transition_, uniform), self._emission_params()
            emitting = states
        else:  # a chain of its own for each sequence
            initial, transition = (draws[0][name].numpy() for name in ("chain.initial", "chain.transition"))
            own = zip(chosen.tolist(), uniform, strict=True)
            states = np.concatenate([sample_states(initial[s], transition[s], row[None]) for s, row in own])
            params = {name: value.flatten(0, 1) for name, value in draws[0].items() if not name.startswith("chain.")}
            emitting = states + self.n_states * chosen.numpy()[:, None]
        with isolated(seed):
            drawn = rebuild(self.emission_).sample(params, torch.from_numpy(emitting.ravel()))
        rows = drawn.numpy().reshape(*states.shape, -1)
        return (rows, states) if return_hidden else rows

    def impute(self, X: Any, lengths: Any = None, *, draws: int | None = None, random_state: Any = None) -> Any:
        """X with each missing value at its mean given its whole sequence (of labels, the most probable): (T, d).

        With `draws`, so many draws of it instead: (draws, T, d) for each sequence.
        """
        data, log_emission = self._emitted(X, lengths)
        emission, params = rebuild(self.emission_), self._emission_params()
        if draws is None:
            posterior = torch.from_numpy(self._smoothed(data, log_emission))
            filled = torch.where(data.values.isnan(), emission.expected(params, data.values, posterior), data.values)
            return data.parted(filled.numpy())
        offsets = data.offsets.numpy()
        _, filtered, impossible = filter_states(self.initial_, self.transition_, log_emission, offsets)
        self._refuse(impossible)
        drawn = []
        for seed in spread(self._seed(random_state), count_of(draws, "draws")):
            uniform = np.random.default_rng(seed).random(len(data.values))
            states = sample_paths(filtered, self.transition_, offsets, uniform)
            with isolated(seed):
                drawn.append(emission.filled(params, data.values, torch.from_numpy(states)).numpy())
        return data.parted(np.stack(drawn), axis=1)

    @property
    def means_(self) -> np.ndarray:
        """The mean of each column in each state, (K, d)."""
        self._check_fitted()
        return state_means(rebuild(self.emission_), self._emission_params())

    # --- helpers ------------------------------------------------------------------------------------------------
    def _emission_params(self) -> Params:
        return {name: torch.from_numpy(value) for name, value in self._learned_emission.items()}

    def _emitted(self, X: Any, lengths: Any) -> tuple[Ragged, np.ndarray]:
        """The sequences, and log p(xₜ | k) of each step, (T, K)."""
        self._check_fitted()
        data = read_sequences(self, X, lengths, reset=False)
        emission = rebuild(self.emission_)
        emission.check(data.values)
        params = {name: value.unsqueeze(0) for name, value in self._emission_params().items()}
        with threads_for(data.values.numel() * len(self.initial_) * data.values.shape[1]):
            return data, emission.log_prob(params, data.values)[:, 0].numpy()

    def _filtered(self, X: Any, lengths: Any) -> tuple[Ragged, np.ndarray, np.ndarray, np.ndarray]:
        data, log_emission = self._emitted(X, lengths)
        return data, *filter_states(self.initial_, self.transition_, log_emission, data.offsets.numpy())

    def _smoothed(self, data: Ragged, log_emission: np.ndarray) -> np.ndarray:
        smoothed = forward_backward(self.initial_, self.transition_, log_emission, data.offsets.numpy())
        self._refuse(smoothed.impossible)
        return smoothed.posterior

    def _refuse(self, impossible: np.ndarray) -> None:
        """A sequence of probability 0 has no posterior."""
        if (impossible >= 0).any():
            place = int(np.flatnonzero(impossible >= 0)[0])
            raise DataError(
                f"sequence {place} has probability 0 (no state is possible at step {impossible[place]}), so that "
                "nothing is known of its states; log_prob tells which sequences are possible."
            )


def _path_log_prob(
    path: np.ndarray, initial: np.ndarray, transition: np.ndarray, log_emission: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """log p(x, z) of each sequence."""
    with np.errstate(divide="ignore"):
        steps = np.concatenate([[0.0], np.log(transition[path[:-1], path[1:]])])
        steps[offsets[:-1]] = np.log(initial[path[offsets[:-1]]])
    return np.add.reduceat(steps + log_emission[np.arange(len(path)), path], offsets[:-1])
