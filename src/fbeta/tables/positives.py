"""Which rows are positive: the value that was asked for, or the rarer of two, and that is said aloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fbeta.spelling import did_you_mean
from fbeta.tables.errors import TableError, listed
from fbeta.tables.kinds import FALSE, TRUE

#: What people call the class that they look for; it decides between two classes of equal size only.
_USUAL = ("1", *TRUE, "positive", "pos")


@dataclass(frozen=True)
class Choice:
    """The positive class, the others, all spellings of the positive one in the file, and what to say."""

    positive: str
    negative: tuple[str, ...]
    spellings: tuple[str, ...]
    note: str


def choose(target: str, counts: Mapping[str, int], positive: str | None = None) -> Choice:
    """Choose the positive class from the number of rows of each value.

    >>> choice = choose("is_fraud", {"0": 990, "1": 10})
    >>> choice.positive, choice.note
    ('1', "positive is is_fraud '1', the rarer value: 10 of 1,000 rows.")
    >>> choose("class", {"a": 5, "b": 4, "c": 3}, positive="b").negative
    ('a', 'c')
    """
    values: dict[str, int] = {}
    spelt: dict[str, list[str]] = {}
    for text, count in counts.items():
        values[label(text)] = values.get(label(text), 0) + count
        spelt.setdefault(label(text), []).append(text)
    rows = sum(values.values())
    if not values:
        raise TableError(f"the target {target!r} has no values: choose another column.")
    if len(values) == 1:
        (only,) = values
        raise TableError(
            f"the target {target!r} is {only!r} in all {rows:,} rows: learning needs both classes."
        )
    if positive is None:
        if len(values) > 2:
            raise TableError(_too_many(target, values))
        chosen, reason = _rarer(values)
    else:
        chosen, reason = _asked(target, values, positive), "as asked"
    negative = tuple(value for value in values if value != chosen)
    against = f" against {len(negative)} other values" if len(negative) > 1 else ""
    note = f"positive is {target} {chosen!r}{against}, {reason}: {values[chosen]:,} of {rows:,} rows."
    return Choice(chosen, negative, tuple(spelt[chosen]), note)


def label(text: str) -> str:
    """One spelling for numbers and booleans that are equal.

    >>> label("1.0"), label("1"), label("TRUE"), label("Oak")
    ('1', '1', 'true', 'Oak')
    """
    if text.casefold() in ("true", "false"):
        return text.casefold()
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _rarer(values: Mapping[str, int]) -> tuple[str, str]:
    (one, first), (other, second) = values.items()
    if first != second:
        return (one if first < second else other), "the rarer value"
    usual = sorted((one, other), key=lambda v: (v.casefold() in _USUAL, v.casefold() not in (*FALSE, "0"), v))
    return usual[-1], "though both values are equally frequent"


def _asked(target: str, values: Mapping[str, int], positive: str) -> str:
    wanted = label(positive.strip())
    by_case = {value.casefold(): value for value in values}
    if wanted in values:
        return wanted
    if wanted.casefold() in by_case:
        return by_case[wanted.casefold()]
    raise TableError(
        f"the target {target!r} is never {positive!r} but {listed(values)}: choose one of them as positive."
        + did_you_mean(positive, values)
    )


def _too_many(target: str, values: Mapping[str, int]) -> str:
    common = sorted(values, key=lambda value: -values[value])
    said = f"the target {target!r} has {len(values):,} values ({listed(common)})"
    if len(values) > 50:
        return f"{said}: choose a column of two classes, or say which value is positive (--positive)."
    return f"{said}: say which is positive, such as --positive {common[-1]}; all others are then negative."
