"""The table of a linear model: each coefficient with its standard error, its interval and a test.

θ̂ⱼ ± q · seⱼ,      q the quantile of the normal, or of Student's t where σ was learned
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Summary"]


@dataclass(frozen=True)
class Summary:
    """Coefficients and how sure they are. `print` shows the table; arrays have an entry per term, (terms,).

    Attributes
    ----------
    terms, estimate : names and values of the coefficients, with intercepts and cut points.
    standard_error : NaN for a term that the rows do not determine. `errors` says where it is from: the observed
        information ("model"), that times the dispersion ("quasi"), a sandwich ("HC0" … "HC3", "cluster"), or the
        "posterior".
    statistic, p_value : the test of a coefficient against 0, by Student's t with `df` degrees of freedom (normal where
        that is infinite); None for a posterior, which has no such test.
    lower, upper : the interval of probability `level`.
    facts : rows, log_likelihood, aic, bic, and where (X, y) were given deviance and dispersion.
    constants : what the likelihood learned that does not depend on x, such as a scale.

    See also
    --------
    Regressor.summary, Classifier.summary, TableModel.summary : make it. plots.coefficients : draws it.
    evaluate.likelihood_ratio_test : compares two.

    >>> from likely import Regressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.1, 2.9, 5.2, 6.8]
    >>> summary = Regressor().fit(X, y).summary()
    >>> summary.terms, summary.estimate.round(2), summary.standard_error.round(3)
    (('x0', 'intercept'), array([1.94, 1.09]), array([0.091, 0.169]))
    """

    terms: tuple[str, ...]
    estimate: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    statistic: np.ndarray | None
    p_value: np.ndarray | None
    level: float
    errors: str
    df: float = math.inf
    facts: Mapping[str, float] = field(default_factory=dict)
    """Of the whole fit: rows, log_likelihood, aic, bic; also deviance and dispersion where the rows were given."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """What the likelihood learned that is of no column: a scale, a dispersion, degrees of freedom."""

    def to_frame(self) -> Any:
        """A polars frame with a row for each term (`.to_pandas()` makes it one of pandas)."""
        import polars  # slow to import, and not needed to see the table

        return polars.DataFrame({"term": list(self.terms)} | dict(self._columns()))

    def to_json(self) -> dict[str, Any]:
        """Plain data: a dict for each term under "terms", and what is told of the whole; None where a number is not."""
        columns = {name: [_plain(value) for value in values.tolist()] for name, values in self._columns()}
        rows = [{"term": term} | {name: own[i] for name, own in columns.items()} for i, term in enumerate(self.terms)]
        told = {
            name: {key: _plain(value) for key, value in getattr(self, name).items()} for name in ("facts", "constants")
        }
        return {"terms": rows, "errors": self.errors, "df": _plain(self.df), **told, "note": self._note()}

    def to_latex(self) -> str:
        """The table as a LaTeX tabular with booktabs rules."""
        columns = self._columns()
        heads = " & ".join(["", *(name.replace("_", " ").replace("%", r"\%") for name, _ in columns)])
        rows = [
            " & ".join([term.replace("_", r"\_"), *(_shown(values[i]) for _, values in columns)]) + r" \\"
            for i, term in enumerate(self.terms)
        ]
        body = "\n".join([rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule", heads + r" \\", r"\midrule"])
        return "\n".join([body, *rows, r"\bottomrule", r"\end{tabular}"])

    def __str__(self) -> str:
        columns = self._columns()
        cells = [["", *(name.replace("_", " ") for name, _ in columns)]]
        cells += [[term, *(_shown(values[i]) for _, values in columns)] for i, term in enumerate(self.terms)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines = [
            "  ".join(
                cell.ljust(w) if not i else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        beside = {**self.constants, **self.facts}
        told = [f"{name.replace('_', ' ')} {_shown(value)}" for name, value in beside.items()]
        return "\n".join([*lines, "", " · ".join([*told, self._note()]), *self._footnote()])

    def _note(self) -> str:
        """Where the standard errors are from."""
        where = {
            "model": "observed information",
            "quasi": "observed information times the dispersion",
            "posterior": "the posterior",
        }.get(self.errors, f"{self.errors}, robust")
        return f"standard errors by {where}" + ("" if math.isinf(self.df) else f", t with {self.df:g} df")

    def _footnote(self) -> list[str]:
        """What a dash means."""
        unknown = np.isnan(self.standard_error)
        if not unknown.any():
            return []
        if unknown.all():
            return ["— no standard error: there are no more rows than coefficients, so none is left to judge them by"]
        return ["— no standard error: the rows do not determine this term, which others add up to (collinear columns)"]

    def _columns(self) -> list[tuple[str, np.ndarray]]:
        percent = f"{100 * self.level:g} %"
        test = "t" if math.isfinite(self.df) else "z"
        columns = [("estimate", self.estimate), ("standard_error", self.standard_error)]
        if self.statistic is not None and self.p_value is not None:
            columns += [(test, self.statistic), ("p", self.p_value)]
        return [*columns, (f"lower {percent}", self.lower), (f"upper {percent}", self.upper)]


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _shown(value: float) -> str:
    if math.isnan(value):
        return "—"
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.4g}"
