"""Files that are nearly right: JSON, LightGBM's text, safetensors and plain bytes with something changed."""

import json
import re
from copy import deepcopy

#: What takes the place of other values.
HOSTILE = [
    0, -1, 1, 2, -2, 5, 7, 100, 5000, 10**6, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63, 10**30, 10**400, 0.5, -0.0,
    1e-320, 1e30, 1e39, 1e308, -1e308, True, False, None, "", "x", "-1", "0", "1", "3", "1000000", "2147483647", "nan",
    "1e999", [], {}, [0], [[0]], {"a": 0}, "\ud800", "gbtree", "gblinear", "dart", "multi:softmax", "category",
    "number", "date", "boolean", "seconds", "OneHot", "Scaled", "%Q", "probability", [[[[[[[[0]]]]]]]],
]  # fmt: skip
TOKENS = "0 -1 -2 1 7 100 5000 1000000 2147483647 -2147483648 99999999999999999999 1e39 1e999 nan inf null x .5 1_0 ,"


def mutant(members, luck):
    """The members of a file with one of them changed."""
    member = luck.choice([*members])
    form = {"json": of_json, "txt": of_lines, "safetensors": of_tensors}[member.rpartition(".")[2]]
    return members | {member: (form if luck.random() < 0.7 else of_bytes)(members[member], luck)}


def of_json(data, luck):
    """JSON with up to four places changed."""
    said = json.loads(data)
    for _ in range(luck.choice([1, 1, 1, 2, 4])):
        _disturb(said, luck)
    text = json.dumps(said)
    if luck.random() < 0.05:  # what a writer of JSON would not write
        twice = text[:-1] + ', "learner": {}, "format": 1}'
        text = luck.choice([text.replace(": 0", ": 1e999", 1), twice, twice, "[" * 10**5, '{"a":' * 10**5, text + "x"])
    return text.encode()


def _disturb(said, luck):
    """Change a random place in lists and objects; one with four times as much in it is twice as likely."""
    while True:
        keys = [*said] if isinstance(said, dict) else range(len(said))
        if not keys:
            return
        (key,) = luck.choices(keys, [_size(said[key]) ** 0.5 for key in keys])
        value, other = said[key], luck.choice(keys)
        if not isinstance(value, dict | list) or luck.random() < 0.1:
            break
        said = value
    act = luck.randrange(10)
    if act == 0:
        del said[key]
    elif act == 1:
        said[key], said[other] = said[other], value
    elif act == 2 and isinstance(said, list):
        said.insert(key, said[other])
    elif act == 3 and isinstance(said, list):
        del said[key:]
    elif act == 4:
        said[key] = json.loads(json.dumps(said[other]))
    elif act in (5, 6) and type(value) in (int, float) and abs(value) < 1e30:
        said[key] = luck.choice([-value, value + 1, value - 1, value * 0.5])
    else:
        said[key] = deepcopy(luck.choice(HOSTILE))  # which the next change must not change


def _size(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inside))


def of_lines(data, luck):
    """Lines "name=numbers" with a number, a line, or an order changed."""
    lines = data.decode().split("\n")
    for _ in range(luck.choice([1, 1, 1, 2, 4])):
        at = luck.randrange(len(lines) if luck.random() < 0.8 else min(40, len(lines)))
        name, equal, value = lines[at].partition("=")
        tokens, act = value.split(" "), luck.randrange(10)
        place, other = luck.randrange(len(tokens)), luck.choice(tokens)
        if act == 0:
            del lines[at]
        elif act == 1:
            lines.insert(at, luck.choice(lines))
        elif act == 2:
            del tokens[place]
        elif act == 3:
            tokens.insert(place, other)
        elif act == 4:
            tokens[place] = other
        elif act < 8:
            tokens[place] = str(luck.randrange(-20, 20))
        else:
            tokens[place] = luck.choice(TOKENS.split())
        if act > 1:
            lines[at] = f"{name}{equal}{' '.join(tokens)}"
    return "\n".join(lines).encode()


#: What takes the place of a cell or of a name.
CELLS = [
    "", " ", "0", "-1", "1e308", "1e309", "-1e-320", "nan", "inf", "-inf", "NA", "?", "1,5", "1_0", "0x10", "٣", "½",
    "é", "true", "2024-13-40", "2024-02-30", "0000-00-00", "x" * 5000, "9" * 400, '"', '""', "'", "a\tb", "a\rb",
    "a\nb", "\x1b[31mred", "\u202e", "\ufeff", "[b]bold[/b]", "</script><script>alert(1)</script>", "*", "^a$",
    "^.*$", "n", "rate [/s]", "len", "=1+1", "\\N", "#", "probability", "decision", "x0", "fraud", "id",
]  # fmt: skip


def of_table(text, delimiter, luck):
    """Delimited text with a cell, a row, a name, a quote or a line end changed."""
    lines = text.split("\n")
    for _ in range(luck.choice([1, 1, 1, 2, 4])):
        at = luck.randrange(len(lines) if luck.random() < 0.8 else 1)
        cells, act = lines[at].split(delimiter), luck.randrange(12)
        place = luck.randrange(len(cells))
        if act < 4:
            cell = luck.choice(CELLS)
            quoted = luck.random() < 0.7
            cells[place] = '"{}"'.format(cell.replace('"', '""')) if quoted else cell
        elif act == 4:
            del cells[place]
        elif act == 5:
            cells.insert(place, luck.choice(cells))
        elif act == 6:
            cells[place] = f'"{cells[place]}"'
        elif act == 7:
            cells[place] += luck.choice(['"', "\r", " ", "\t", ";", ",", "\f", "\v", "\x1c", "\x85", "\u2028"])
        lines[at] = delimiter.join(cells)
        if act == 8:
            lines.insert(at, luck.choice(["", " ", "# note", delimiter, luck.choice(lines)]))
        elif act == 9:
            del lines[at]
        elif act == 10:
            lines[at:] = [line + "\r" for line in lines[at:]]
        lines = lines or [""]
    return "\n".join(lines) if luck.random() < 0.95 else "\r".join(lines)


def of_tensors(data, luck):
    """Safetensors with another header, and a right or a lying length before it."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = of_json(data[8:end], luck)
    length = luck.choice([len(header)] * 6 + [0, 2**63, 2**64 - 1, 10**8, len(data)])
    return length.to_bytes(8, "little") + header + data[end:]


def of_bytes(data, luck):
    """Flips, an early end, a hole, a copy, or one number in place of another."""
    data, act = bytearray(data), luck.randrange(6)
    a, b = sorted(luck.randrange(len(data)) for _ in range(2))
    numbers = [found.span() for found in re.finditer(rb"-?\d+", bytes(data))] if act > 3 else []
    if act == 0:
        for _ in range(luck.choice([1, 1, 3, 20])):
            data[luck.randrange(len(data))] = luck.randrange(256)
    elif act == 1:
        del data[a:]
    elif act == 2:
        del data[a : min(b, a + luck.randrange(1, 300))]
    elif act == 3:
        data[a:a] = data[b : b + luck.randrange(300)]
    elif numbers:
        start, end = luck.choice(numbers)
        data[start:end] = luck.choice(TOKENS.split()).encode()
    return bytes(data)
