"""What a field of text says: no value, yes or no, a number. One grammar for all that is read."""

import re
from collections.abc import Iterable
from decimal import Decimal

#: What stands for no value: each in small and in large letters, and as it is usually written.
_NONE = "na NA Na n/a N/A nan NAN NaN Nan null NULL Null ? <na> <NA> <null> <NULL> #n/a #N/A"
MISSING = ("", *_NONE.split())
TRUE, FALSE = ("true", "yes", "t", "y"), ("false", "no", "f", "n")
#: Those that mean the same whatever stands beside them, as usually written; a T may be a base, an N a direction.
WORDS = tuple(spelt for word in ("true", "yes", "false", "no") for spelt in (word, word.title(), word.upper()))
#: Finite numbers as polars reads them, too. Python's float() takes more: 1_000, digits of other scripts, "nan".
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def is_number(text: str) -> bool:
    """Whether a text is a number, with nothing around it."""
    return _NUMBER.fullmatch(text) is not None


def class_names(texts: Iterable[str]) -> dict[str, str]:
    """One name for the spellings of a class: numbers that are equal, and yes, no, true and false in any letters.

    T and t, Y and y, … are one only where there is nothing but true and false.

    >>> class_names(["1", "1.0", "Oak", "YES"])
    {'1': '1', '1.0': '1', 'Oak': 'Oak', 'YES': 'yes'}
    """
    texts = list(texts)
    lower = {text.casefold() for text in texts}
    letters = lower <= {*TRUE, *FALSE} and lower & {*TRUE} and lower & {*FALSE}
    words = (*TRUE, *FALSE) if letters else WORDS
    return {text: text.casefold() if text.casefold() in words else _number_name(text) for text in texts}


def _number_name(text: str) -> str:
    """One spelling for numbers that are equal; any other text as it is."""
    if not is_number(text):
        return text
    number = float(text)
    short = str(int(number)) if number.is_integer() and abs(number) < 1e18 else repr(number)
    return short if Decimal(short) == Decimal(text) else text  # a double holds 17 digits, and ends at 1e308
