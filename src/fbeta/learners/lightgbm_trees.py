"""LightGBM's own file of a booster, read by us: checked, and written anew from what was checked."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from fbeta.learners.trees import LARGEST, Whole, check_splits, check_trees, reals, whole

_INT = 2**31 - 1
_DOUBLE = float(np.finfo(np.float64).max)
#: The numbers of each split and of each leaf; the second halves decide nothing, but importances are made of them.
_SPLITS = (
    "left_child", "right_child", "split_feature", "decision_type", "threshold",
    "split_gain", "internal_value", "internal_weight", "internal_count",
)  # fmt: skip
_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_WHOLE = {"left_child", "right_child", "split_feature", "decision_type", "internal_count", "leaf_count"}
_END = "end of trees\n\nfeature_importances:\n\nparameters:\n\nend of parameters\n\npandas_categorical:null\n"


def rewritten(data: bytes) -> bytes:
    """The booster that `model_to_string()` gave, in that form again; ValueError unless each tree is sound.

    Only what is checked here is written, so there is nothing in it that nobody looked at.
    """
    text, end, _ = data.decode().partition("\nend of trees\n")
    about, *blocks = text.split("\nTree=")
    head = _pairs(about)
    lines = {"tree": "", "version": "v4", "num_class": "1", "num_tree_per_iteration": "1"}
    if not end or any(head.get(name) != value for name, value in lines.items()):
        raise ValueError("it holds no trees of LightGBM 4 for one class")
    columns = len(head["feature_names"].split(" "))
    if head["max_feature_idx"] != str(columns - 1):
        raise ValueError("its columns are not as many as their names")
    lines |= {"label_index": "0", "max_feature_idx": str(columns - 1)}
    if (loss := head.get("objective")) is not None:
        if not re.fullmatch(r"binary sigmoid:[-+.e0-9]{1,30}", loss):
            raise ValueError(f"a model file holds trees of the objective binary, no {loss!r:.40}")
        (steepness,) = reals([[float(loss.partition(":")[2])]], LARGEST, "sigmoid")
        if not steepness > 0:
            raise ValueError("sigmoid is not above 0")
        lines["objective"] = f"binary sigmoid:{steepness:.17g}"
    lines |= {"average_output": ""} if "average_output" in head else {}
    trees = _trees(blocks, columns)
    lines["feature_names"] = " ".join(f"Column_{i}" for i in range(columns))
    lines["feature_infos"] = " ".join(["none"] * columns)
    lines["tree_sizes"] = " ".join(str(len(tree)) for tree in trees)
    return f"{_lines(lines)}\n{''.join(trees)}{_END}".encode()


def _trees(blocks: Sequence[str], columns: int) -> list[str]:
    """The text of every tree, made of numbers that were checked."""
    trees = [_pairs(f"Tree={block}") for block in blocks]
    if not trees or [tree["Tree"] for tree in trees] != [str(i) for i in range(len(trees))]:
        raise ValueError("it has no trees, or not one after another")
    if any(tree["num_cat"] != "0" or tree["is_linear"] != "0" for tree in trees):
        raise ValueError("a model file holds neither splits by categories nor linear trees")
    leaves = whole([[int(tree["num_leaves"]) for tree in trees]], 1, _INT // 2, "num_leaves")
    held: dict[str, Any] = {}
    for names, sizes in ((_SPLITS, leaves - 1), (_LEAVES, leaves)):
        for name in names:
            lists = [_numbers(tree[name]) for tree in trees]
            if name in _LEAVES[1:]:  # a single leaf may go without them
                lists = [some or ["0"] for some in lists]
            if [len(some) for some in lists] != sizes.tolist():
                raise ValueError(f"a tree has not as many numbers of {name} as it should")
            if name in _WHOLE:
                held[name] = whole((map(int, some) for some in lists), -_INT, _INT, name)
            else:
                held[name] = reals((map(float, some) for some in lists), _DOUBLE, name)
    _check_children(leaves, held["left_child"], held["right_child"])
    check_splits(held["split_feature"], columns, held["leaf_value"])
    # 2: missing values go left; 4 or 8: zeros or NaN are missing; odd numbers are splits by categories
    if not np.isin(held["decision_type"], (0, 2, 4, 6, 8, 10)).all():
        raise ValueError("a split decides in a way that is not known")
    texts = {name: _texts(name, numbers, leaves - (name in _SPLITS)) for name, numbers in held.items()}
    made = []
    for i, count in enumerate(leaves.tolist()):
        lines = {"Tree": str(i), "num_leaves": str(count), "num_cat": "0", **{name: texts[name][i] for name in texts}}
        made.append(_lines(lines | {"is_linear": "0", "shrinkage": "1"}) + "\n\n")
    return made


def _check_children(leaves: Whole, left: Whole, right: Whole) -> None:
    """ValueError unless these are trees; a child from 0 on is a split of its tree, and −1, −2, … are its leaves."""
    splits = np.repeat(leaves - 1, leaves - 1)  # of the tree of each split
    sizes = 2 * leaves - 1  # its splits, then its leaves
    first = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) < np.repeat(leaves - 1, sizes)
    sides = []
    for child in (left, right):
        if ((child >= splits) | (~child > splits)).any():
            raise ValueError("a child of a node lies outside its tree")
        sides.append(np.full(len(first), -1))
        sides[-1][first] = np.where(child >= 0, child, splits + ~child)
    check_trees(sizes, *sides)


def _pairs(text: str) -> dict[str, str]:
    """The lines "name=value", or a name alone, each at most once."""
    lines = [line.partition("=")[::2] for line in text.split("\n") if line]
    found = dict(lines)
    if len(found) < len(lines):
        raise ValueError("it says something twice")
    return found


def _lines(pairs: dict[str, str]) -> str:
    bare = ("tree", "average_output")
    return "".join(f"{name}\n" if name in bare else f"{name}={value}\n" for name, value in pairs.items())


def _texts(name: str, numbers: Any, sizes: Whole) -> list[str]:
    """So many numbers for each tree, as text."""
    # Seventeen digits are every bit of a double, and faster than as many as it takes; statistics need fewer.
    form = "%d " if name in _WHOLE else "%.17g " if name in ("threshold", "leaf_value") else "%.9g "
    values = iter(numbers.tolist())
    return [(form * size % tuple(islice(values, size))).rstrip() for size in sizes.tolist()]


def _numbers(text: str) -> list[str]:
    if not re.fullmatch(r"[-+.e0-9 ]*", text):
        raise ValueError("a list of numbers holds something else")
    return text.split()
