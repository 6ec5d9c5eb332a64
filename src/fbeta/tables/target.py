"""Which class is positive: the asked one, or the rarer of two, for estimators, too; without NumPy and polars."""

from collections.abc import Mapping
from typing import NamedTuple

from fbeta.spelling import did_you_mean
from fbeta.tables.errors import TableError, listed
from fbeta.tables.values import FALSE, TRUE, class_names, is_number

#: What people call the class that they look for; it decides between two classes of equal size only.
_USUAL = ("1", *TRUE, "positive", "pos")


class Classes(NamedTuple):
    """The positive class, the others, all spellings of the positive one in the file, and what to say."""

    positive: str
    negative: tuple[str, ...]
    spellings: tuple[str, ...]
    note: str


def choose_classes(target: str, counts: Mapping[str, int], positive: str | None = None) -> Classes:
    """Choose the positive class of a target from the number of rows of each of its values."""
    alike: dict[str, list[str]] = {}
    for text, name in class_names(counts).items():
        alike.setdefault(name, []).append(text)
    # True and False may have come as real booleans; other words keep the spelling that most rows have.
    spelt = {
        name if is_number(name) or name in ("true", "false") else max(texts, key=lambda text: counts[text]): texts
        for name, texts in alike.items()
    }
    values = {name: sum(counts[text] for text in texts) for name, texts in spelt.items()}
    if not values:
        raise TableError(f"the target {target!r} has no values: choose another column.")
    if len(values) == 1:
        raise TableError(
            f"the target {target!r} is {next(iter(values))!r} in all {sum(values.values()):,} rows: learning needs "
            "both classes."
        )
    if positive is not None:
        chosen = _asked(target, values, positive)
        note = _sentence(chosen, "as asked", values, target)
    elif len(values) == 2:
        chosen, note = rarer_class(values, target)
    else:
        common = sorted(values, key=lambda value: -values[value])
        said = f"the target {target!r} has {len(values):,} values ({listed(common)})"
        if len(values) > 50:
            raise TableError(f"{said}: choose a column of two classes, or say which value is positive (--positive).")
        raise TableError(
            f"{said}: say which is positive, such as --positive {common[-1]}; all others are then negative."
        )
    negative = tuple(value for value in values if value != chosen)
    if words := [text for texts in spelt.values() if len(texts) > 1 for text in texts if text.isalpha()]:
        note += f" Spellings are one word: {listed(words)}."
    return Classes(chosen, negative, tuple(spelt[chosen]), note)


def rarer_class(counts: Mapping[str, int], target: str = "") -> tuple[str, str]:
    """The rarer of two classes, or the usual name of a positive one (else the last) of equals; and a sentence on it."""

    def key(name: str) -> tuple[int, bool, bool, str]:
        return -counts[name], name.casefold() in _USUAL, name.casefold() not in (*FALSE, "0"), name

    one, other = counts
    reason = "the rarer value" if counts[one] != counts[other] else "though both values are equally frequent"
    chosen = max(one, other, key=key)
    return chosen, _sentence(chosen, reason, counts, target)


def _sentence(positive: str, reason: str, counts: Mapping[str, int], target: str) -> str:
    which = f"{target} {positive!r}".lstrip()
    against = f" against {len(counts) - 1} other values" if len(counts) > 2 else ""
    return f"positive is {which}{against}, {reason}: {counts[positive]:,} of {sum(counts.values()):,} rows."


def _asked(target: str, values: Mapping[str, int], positive: str) -> str:
    (wanted,) = class_names([str(positive).strip()]).values()
    spelt_alike = [value for value in values if value.casefold() == wanted.casefold()]
    if spelt_alike:
        return wanted if wanted in values else spelt_alike[-1]
    raise TableError(
        f"the target {target!r} is never {positive!r} but {listed(values)}: choose one of them as positive."
        + did_you_mean(positive, values)
    )
