"""JSON lines: an object in each line, whose keys are columns. Numbers are kept as they are written."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from fbeta.tables.delimited import Copy, Delimited
from fbeta.tables.errors import TableError, listed
from fbeta.tables.text_copy import copied

#: Bytes of a line at most.
LONGEST = 1 << 26


def is_json(plain: Path) -> bool:
    """Whether a text file has an object or a list of objects where a table has its header."""
    with open(plain, "rb") as stream:
        head = stream.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"{") or (head.startswith(b"[") and head[1:].lstrip().startswith(b"{"))


def read_json_lines(path: Path, plain: Path, copy: Copy, notes: list[str]) -> Delimited:
    """The table of a file of JSON lines that lies at `plain`; what holds lists or objects is left out, and said."""
    names: dict[str, bool] = {}  # and whether the values are plain
    for record in _records(path, plain):
        for name, value in record.items():
            names[name] = names.get(name, True) and not isinstance(value, dict | list)
    kept = [name for name, is_plain in names.items() if is_plain]
    if nested := [name for name, is_plain in names.items() if not is_plain]:
        what = "a column holds" if len(nested) == 1 else f"{len(nested)} columns hold"
        notes.append(f"{what} lists or objects: {listed(nested)} dropped; give their parts columns of their own.")
    if not kept:
        raise TableError(f'{path} has no column of plain values: write objects such as {{"x": 1, "y": "yes"}}.')
    rows = ([_text(record.get(name)) for name in kept] for record in _records(path, plain))
    return copied(path, kept, rows, copy, notes)


def _text(value: Any) -> str | None:
    return str(value).lower() if isinstance(value, bool) else value


def _records(path: Path, plain: Path) -> Iterator[dict[str, Any]]:
    """The object of every line that is not blank; a TableError names the first line that has none."""
    number = 0

    def refuse(why: str) -> NoReturn:
        raise TableError(f"cannot read {path}: line {number} {why}.")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            refuse(f"has the key {next(n for n in names if names.count(n) > 1)!r:.60} twice: keep one")
        return found

    decoder = json.JSONDecoder(object_pairs_hook=once, parse_float=str, parse_int=str, parse_constant=str)
    with open(plain, "rb") as stream:
        while line := stream.readline(LONGEST):
            number += 1
            if len(line) == LONGEST:
                refuse(f"has more than {LONGEST:,} bytes: write one object per line")
            text = line.decode().removeprefix("\ufeff").strip()
            if not text:
                continue
            try:
                record = decoder.decode(text)
                held = json.dumps(record, ensure_ascii=False) if "\\u" in text else ""
                held.encode()
            except json.JSONDecodeError as error:
                refuse(f"is no JSON object ({error.msg} at letter {error.colno:,}): write one object per line")
            except RecursionError:
                refuse("has lists or objects nested too deep: flatten them")
            except UnicodeEncodeError:
                refuse("has half of a letter (\\ud800 to \\udfff): write it again")
            if not isinstance(record, dict):
                refuse('is no object: write one per line, such as {"x": 1, "y": "yes"}')
            if "\\u0000" in held:
                refuse("has a zero byte inside: it is damaged, write it again")
            yield record
