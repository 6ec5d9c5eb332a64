"""Dataclasses as plain data and back: what JSON can hold, and nothing that is not what its annotation says."""

import math
import types
import typing
from dataclasses import is_dataclass
from typing import Any


def to_plain(value: Any) -> Any:
    """What JSON can hold: tuples and arrays are lists, NaN and ±inf are text.

    >>> to_plain({"cut": float("inf"), "rows": (1, 2.5)})
    {'cut': 'inf', 'rows': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {name: to_plain(x) for name, x in value.items()}
    if hasattr(value, "tolist"):  # arrays, and numbers of NumPy
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_plain(x) for x in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_plain(hint: Any, data: Any, at: str) -> Any:
    """The value of an annotation from what JSON gave; ValueError says where anything else stands.

    >>> from_plain(tuple[float, ...], [1, "nan"], "scores")
    (1.0, nan)
    >>> from_plain(int, "3", "rows")
    Traceback (most recent call last):
    ValueError: rows should be int; got '3'.
    """
    origin = typing.get_origin(hint)
    if origin is types.UnionType:  # something, or None
        inner = next(x for x in typing.get_args(hint) if x is not type(None))
        return None if data is None else from_plain(inner, data, at)

    if origin is typing.Literal:
        if data not in typing.get_args(hint):
            raise ValueError(f"{at} should be one of {', '.join(map(repr, typing.get_args(hint)))}; got {data!r:.60}.")
        return data
    if origin is tuple:
        if not isinstance(data, list | tuple):  # a tuple: plain data that was no JSON yet
            raise ValueError(f"{at} should be a list; got {data!r:.60}.")
        inner = typing.get_args(hint)[0]
        return tuple(from_plain(inner, x, f"{at}[{i}]") for i, x in enumerate(data))
    if is_dataclass(hint):
        if not isinstance(data, dict):
            raise ValueError(f"{at} should be an object; got {data!r:.60}.")
        hints = typing.get_type_hints(hint)
        given = {name: from_plain(hints[name], data[name], f"{at}.{name}") for name in hints if name in data}
        try:
            return typing.cast("type[Any]", hint)(**given)
        except TypeError as error:
            raise ValueError(f"{at} is incomplete: {error}.") from None
    if hint is float and not isinstance(data, bool) and (isinstance(data, int | float) or data in _UNPLAIN):
        try:
            return float(data)
        except OverflowError:
            raise ValueError(f"{at} is too large for a number.") from None
    if isinstance(data, hint) and not (hint is int and isinstance(data, bool)):
        if hint is int and abs(data) >= 2**64:
            raise ValueError(f"{at} is too large for a number.")
        return data
    raise ValueError(f"{at} should be {hint.__name__}; got {data!r:.60}.")


_UNPLAIN = ("nan", "inf", "-inf")
