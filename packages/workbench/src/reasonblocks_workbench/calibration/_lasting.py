"""Fits the chance that trouble lasts: the steps of recorded runs say whether the next ones brought nothing either."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reasonblocks.monitors.persistence import AHEAD, LASTING, Weights
from reasonblocks.util.json import evolve

from ._columns import Observed, by_source

WEAKEST = 0.3
"""Strength of the penalty on large weights, for numbers in units of their spread (scikit-learn's C)."""


def fit_lasting(runs: Sequence[Observed], prior: Weights) -> Weights:
    """Return the weights fitted to the runs' steps, with the prior's threshold.

    If trouble lasts after all steps or after none, there is nothing to fit, and the prior is returned. Outcomes do not
    count. A source weighs as much as the square root of its steps, so that large ones do not decide alone. Needs
    scikit-learn.
    """
    from sklearn.linear_model import LogisticRegression

    numbers, lasts, weight = [], [], []
    for source in by_source(runs).values():
        rows = [row for run in source for row in run.numbers[:-AHEAD]]
        numbers += rows
        weight += [len(rows) ** -0.5] * len(rows)
        lasts += [_lasts(run.stale[k + 1 : k + 1 + AHEAD]) for run in source for k in range(len(run.stale) - AHEAD)]
    if len({*lasts}) < 2:
        return prior
    given = np.array(numbers)
    mean, spread = given.mean(0), given.std(0) + 1e-9
    model = LogisticRegression(C=WEAKEST, max_iter=500)
    model.fit((given - mean) / spread, np.array(lasts), sample_weight=np.array(weight) / np.mean(weight))
    slopes = model.coef_[0] / spread
    known, lasted, failed, repeated = (round(float(slope), 3) for slope in slopes)
    base = round(float(model.intercept_[0] - slopes @ mean), 3)
    return evolve(prior, base=base, known=known, lasted=lasted, failed=failed, repeated=repeated)


def _lasts(ahead: Sequence[bool]) -> bool:
    return sum(ahead) >= LASTING
