"""What is unusual about new rows, counted piece by piece and compared with what an encoder learned."""

from collections import Counter

import numpy as np
import polars as pl

from fbeta.tables.encoding import Encoder, OneHot, Scaled, numbers
from fbeta.tables.errors import listed
from fbeta.tables.formats import columns_of

#: Fewer rows may be unusual by chance; of each piece so many are looked at.
_ENOUGH, _SOME = 20, 4096
#: At most a ninth of the values that were learned is so many deviations from their mean.
FAR = 3
#: Values that vary so much less are in another unit.
NARROW = 20


class NewRows:
    """Counts of missing, far and unknown values of each part of an encoder, in rows that come piece by piece.

    >>> from fbeta.tables import Column
    >>> encoder = Encoder.fit(pl.DataFrame({"age": [20.0, 30.0, 40.0]}), [Column("age", "number")])
    >>> rows = NewRows(encoder)
    >>> rows.add(pl.DataFrame({"age": [500.0] * 50}))
    >>> rows.notes()
    ["most values of 'age' are more than 3 deviations from the mean that the model learned: is that another unit?"]
    """

    def __init__(self, encoder: Encoder) -> None:
        self.parts = [part for part in encoder.parts if isinstance(part, OneHot) or part.part in ("", "seconds")]
        self.rows = 0
        self.lost: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.strange: Counter[str] = Counter()
        self.sums = {part.name: np.zeros(2) for part in self.parts}

    def add(self, features: pl.DataFrame) -> None:
        """Count the rows of a piece, typed as the encoder takes them."""
        self.rows += features.height
        held, some = columns_of(features), columns_of(features.gather_every(-(-max(features.height, 1) // _SOME)))
        for part in self.parts:
            self.lost[part.name] += held[part.name].null_count()
            if isinstance(part, Scaled):
                values = numbers(some[part.name], part.part)
                values = (values[~np.isnan(values)] - part.mean) / part.deviation
                self.strange[part.name] += int((np.abs(values) > FAR).sum()) * (not part.flat)
                values = np.clip(values, -1e9, 1e9)
                self.sums[part.name] += (values.sum(), (values**2).sum())
            else:
                values = some[part.name].cast(pl.String).drop_nulls().to_numpy()
                self.strange[part.name] += int((~np.isin(values, part.levels)).sum())
            self.seen[part.name] += len(values)

    def notes(self) -> list[str]:
        """What is unusual about them; nothing about a few rows."""
        if self.rows < _ENOUGH:
            return []
        empty, lost, far, narrow, unknown = [], [], [], [], []
        for part in self.parts:
            name, seen, missing = part.name, self.seen[part.name], self.lost[part.name]
            marked = part.marked if isinstance(part, Scaled) else part.missing
            if missing == self.rows:
                empty.append(name)
            elif missing > self.rows / 2 and not marked:
                lost.append(name)
            elif isinstance(part, OneHot):  # where there were many, most may be others again
                new = self.strange[name]
                unknown += [name] * bool(seen and (new == seen if part.other else new > seen / 2))
            elif self.strange[name] > seen / 2:
                far.append(name)
            elif not part.flat and seen >= _ENOUGH:
                mean, square = self.sums[name] / seen
                narrow += [name] * bool(1e-6 < square - mean**2 < 1 / NARROW**2)
        filled, unit = "are filled with what is usual.", "is that another unit?"
        found = (
            (empty, "without any value, though the model learned from some:", filled),
            (lost, "missing in most rows, and in none that the model learned from:", filled),
            (far, "most values of", f"are more than {FAR} deviations from the mean that the model learned: {unit}"),
            (narrow, "values of", f"vary {NARROW} times less than those that the model learned: {unit}"),
            (unknown, "most categories of", "are none of those that the model learned."),
        )
        return [f"{start} {listed(names)} {end}" for names, start, end in found if names]
