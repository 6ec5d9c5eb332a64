"""What a field of text says: no value, yes or no, a number. One grammar for all that is read."""

import re
from decimal import Decimal

#: What stands for no value: each in small and in large letters, and as it is usually written.
_NONE = "na NA Na n/a N/A nan NAN NaN Nan null NULL Null ? <na> <NA> <null> <NULL> #n/a #N/A"
MISSING = ("", *_NONE.split())
TRUE, FALSE = ("true", "yes", "t", "y"), ("false", "no", "f", "n")
#: Finite numbers as polars reads them, too. Python's float() takes more: 1_000, digits of other scripts, "nan".
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def is_number(text: str) -> bool:
    """Whether a text is a number, with nothing around it."""
    return _NUMBER.fullmatch(text) is not None


def class_name(text: str) -> str:
    """One spelling for numbers and booleans that are equal; any other text is a class of its own."""
    if text.casefold() in ("true", "false"):
        return text.casefold()
    if not is_number(text):
        return text
    number = float(text)
    short = str(int(number)) if number.is_integer() and abs(number) < 1e18 else repr(number)
    return short if Decimal(short) == Decimal(text) else text  # a double holds 17 digits, and ends at 1e308
