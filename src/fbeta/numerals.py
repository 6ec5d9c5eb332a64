"""Numbers and names from the data as text, the same everywhere; a page's script writes numbers by the same rules."""

import math
import unicodedata
from collections.abc import Callable, Sequence

from fbeta.metrics.confusion import Confusion

NONE = "–"


def fixed(x: float, digits: int = 3) -> str:
    """A number with a fixed number of decimals and a true minus sign; a dash for NaN."""
    if not math.isfinite(x):
        return NONE if math.isnan(x) else "∞" if x > 0 else "−∞"
    text = f"{x:,.{digits}f}"
    return text.replace("-", "" if not text.strip("-0.") else "−")


def signed(x: float, digits: int = 3) -> str:
    """As `fixed`, with its sign."""
    text = fixed(x, digits)
    return f"+{text}" if x > 0 and text.strip("0.") else text


def between(low: float, high: float, digits: int = 3, *, sign: bool = False) -> str:
    """The two ends of an interval."""
    write = signed if sign else fixed
    return f"{write(low, digits)} to {write(high, digits)}"


def short(x: float | None, digits: int = 4, *, zeros: bool = False) -> str:
    """A number with a few significant digits, with or without the zeros at its end; a dash for None and NaN."""
    if x is None or math.isnan(x):
        return NONE
    return f"{x:{'#' * zeros}.{digits}g}".replace("-", "−")


def cut(x: float, digits: int = 6) -> str:
    """A cut that can be copied into a program; "none" or "all" where it is infinite."""
    if not math.isfinite(x):
        return NONE if math.isnan(x) else "none" if x > 0 else "all"
    return f"{x:.{digits}g}"


def p_value(p: float) -> str:
    """A p value with two or three decimals."""
    return "< 0.001" if p < 0.001 else fixed(p, 3 if p < 0.1 else 2)


def percent(share: float) -> str:
    """A share in percent."""
    return f"{fixed(100 * share, 2)} %" if math.isfinite(share) else NONE


def count(x: float) -> str:
    """A number of rows; with a decimal where rows carry weights."""
    return fixed(x, 0 if not math.isfinite(x) or x == round(x) else 1)


def cells(c: Confusion) -> str:
    """The four counts of a confusion matrix in words."""
    named = {"true positive": c.tp, "false negative": c.fn, "false positive": c.fp, "true negative": c.tn}
    return ", ".join(f"{count(n)} {name}{'s' * (n != 1)}" for name, n in named.items())


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if not math.isfinite(seconds):
        return NONE
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def series(items: Sequence[str]) -> str:
    """Things in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def clean(text: str, instead: Callable[[str], str] = lambda letter: "�") -> str:
    """Text from the data, safe to show: without line ends, controls, and marks that turn the order of reading."""
    unsafe = {x for x in set(text) if unicodedata.category(x) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return text.translate({ord(x): instead(x) for x in unsafe})
