"""The structure of a Bayesian network from 5,000 rows of asia (8 variables) and alarm (37), against pgmpy.

All sides get the same frame of categories. Quality is the structural Hamming distance between the equivalence class of
what was learned and that of the network the rows are from, a mean over seeds. Likely also fits the tables in its time.
`HillClimbing(restarts=0)` is the search that pgmpy does; the default begins anew and finds better graphs. PC of pgmpy
takes a minute on alarm, so that it is run once there.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from likely import BayesianNetwork
from likely.models.bayesian_network import PC, ChowLiu, HillClimbing, Structure, structural_hamming_distance

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["run"]

ROWS = 5000


def run(seeds: int = 3) -> list[Result]:
    import pandas as pd
    from pgmpy.estimators import PC as PgmpyPC
    from pgmpy.estimators import HillClimbSearch, TreeSearch

    logging.getLogger("pgmpy").setLevel(logging.ERROR)

    def climb(frame: Any) -> Any:
        return HillClimbSearch(frame).estimate(scoring_method="bic-d", show_progress=False)

    def test(frame: Any) -> Any:
        return PgmpyPC(frame).estimate(ci_test="g_sq", return_type="dag", show_progress=False, n_jobs=1)

    def tree(frame: Any) -> Any:
        return TreeSearch(frame).estimate(show_progress=False)

    pairs: list[tuple[str, Structure, Callable[[Any], Any]]] = [
        ("Chow–Liu", ChowLiu(), tree),
        ("hill climbing once", HillClimbing(restarts=0), climb),
        ("hill climbing", HillClimbing(), climb),
        ("PC", PC(), test),
    ]
    results = []
    for network in ("asia", "alarm"):
        model = BayesianNetwork.from_bif(FOLDER / f"{network}.bif")
        frames = [pd.DataFrame(model.sample(ROWS, random_state=seed)).astype("category") for seed in range(seeds)]
        for what, structure, peer in pairs:
            own = BayesianNetwork(structure=structure, smoothing=1.0, random_state=0)
            few = frames[:1] if network == "alarm" and what == "PC" else frames

            def ours(frame: Any, own: BayesianNetwork = own) -> list[Any]:
                return own.fit(frame).edges_

            def theirs(frame: Any, peer: Callable[[Any], Any] = peer) -> list[Any]:
                return [tuple(edge) for edge in peer(frame).edges()]

            own.fit(frames[0])  # compiled before the clock starts
            mine, other = ([_timed(side, frame, model) for frame in few] for side in (ours, theirs))
            seconds = [float(np.median([second for second, _ in side])) for side in (mine, other)]
            distance = [float(np.mean([apart for _, apart in side])) for side in (mine, other)]
            words = f"{network}, {what}: distance {distance[0]:.1f}, pgmpy {distance[1]:.1f}, mean of {len(few)}"
            results.append(Result("structure", "pgmpy", *seconds, words, distance[0] <= distance[1], 0.1))
    return results


def _timed(learn: Callable[[Any], list[Any]], frame: Any, model: BayesianNetwork) -> tuple[float, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        edges = learn(frame)
        seconds = time.process_time() - start
    return seconds, structural_hamming_distance(dict.fromkeys([*model.names_, *map(_edge, edges)]), model.edges_)


def _edge(edge: Any) -> Any:
    return edge if isinstance(edge, str) else tuple(edge)


if __name__ == "__main__":
    show(run())
