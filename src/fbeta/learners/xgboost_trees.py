"""XGBoost's own file of a booster, read by us: checked, and written anew from what was checked."""

import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from fbeta.learners.trees import Whole, check_splits, check_trees, reals, whole
from fbeta.sealed import read_json

_SINGLE = float(np.finfo(np.float32).max)
#: The feature of a node that was pruned; its number stays in use, and nothing points to it.
_PRUNED = 2**31 - 1
#: The integers of every node, the least and the most they may be (a split of type 1 is by categories), and its reals.
_WHOLE = {
    "left_children": (-1, _PRUNED),
    "right_children": (-1, _PRUNED),
    "split_indices": (0, _PRUNED),
    "default_left": (0, 1),
    "split_type": (0, 0),
}
_REALS = ("split_conditions", "base_weights", "loss_changes", "sum_hessian")
_NO_CATEGORIES = {
    **dict.fromkeys(("categories", "categories_nodes"), np.zeros(0, ">i4")),
    **dict.fromkeys(("categories_segments", "categories_sizes"), np.zeros(0, ">i8")),
}
#: Types of numbers, as UBJSON names them.
_TYPES = {">f4": b"d", ">i4": b"l", ">i8": b"L", "|u1": b"U"}


def rewritten(data: bytes) -> bytes:
    """The booster that `save_raw("json")` gave, as UBJSON that XGBoost reads; ValueError unless each tree is sound.

    Only what is checked here is written, so there is nothing in it that nobody looked at.
    """
    learner = read_json(data)["learner"]
    booster, facts = learner["gradient_booster"], learner["learner_model_param"]
    kind, loss = booster["name"], learner["objective"]["name"]
    if kind not in ("gbtree", "dart") or loss != "binary:logistic":
        raise ValueError(f"a model file holds trees of binary:logistic, no {kind!r:.40} of {loss!r:.40}")
    columns = _count(facts["num_feature"])
    if (facts["num_class"], facts["num_target"]) != ("0", "1"):
        raise ValueError("its booster has several classes or targets")
    first = np.float32(np.clip(_number(facts["base_score"]), 0.0, 1.0))
    if not 0 < first < 1:
        raise ValueError("its first score is no probability")
    held = (booster["gbtree"] if kind == "dart" else booster)["model"]
    rounds, trees = _rounds(held), _trees(held["trees"], columns)
    model = {
        "gbtree_model_param": {"num_parallel_tree": str(rounds[1]), "num_trees": str(len(trees))},
        "iteration_indptr": rounds,
        "tree_info": [0] * len(trees),
        "trees": trees,
    }
    gbtree: dict[str, Any] = {"model": model, "name": "gbtree"}
    if kind == "dart":
        weights = reals([booster["weight_drop"]], 1e6, "the weight of a tree")
        if len(weights) != len(trees):
            raise ValueError("it has not one weight per tree")
        gbtree = {"gbtree": gbtree, "name": "dart", "weight_drop": weights.tolist()}
    parts = {
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": gbtree,
        "learner_model_param": {
            "base_score": str(first),
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": str(columns),
            "num_target": "1",
        },
        "objective": {"name": loss, "reg_loss_param": {"scale_pos_weight": "1"}},
    }
    # The oldest version that is supported: later ones read it, too.
    return _ubjson({"learner": parts, "version": [2, 1, 0]})


def _rounds(model: Mapping[str, Any]) -> list[int]:
    """Where the trees of each round begin, and where the last ones end; as many trees in each."""
    count, said = len(model["trees"]), model["gbtree_model_param"]
    each = _count(said["num_parallel_tree"])
    if not count or not each or count % each or model["iteration_indptr"] != list(range(0, count + 1, each)):
        raise ValueError("it has no trees, or not as many in each round")
    if _count(said["num_trees"]) != count or model["tree_info"] != [0] * count:
        raise ValueError("its trees are not all there, or not all of the one class")
    return list(range(0, count + 1, each))


def _trees(trees: list[Mapping[str, Any]], columns: int) -> list[dict[str, Any]]:
    """Every tree, made of numbers that were checked, without the nodes that were pruned."""
    for tree in trees:
        said = tree["tree_param"]
        if {len(tree[name]) for name in (*_WHOLE, *_REALS)} != {_count(said["num_nodes"])}:
            raise ValueError("a tree has arrays of several lengths")
        if said["size_leaf_vector"] not in ("0", "1"):
            raise ValueError("a tree has leaves of several values")
    lists = {name: [tree[name] for tree in trees] for name in (*_WHOLE, *_REALS)}
    left, right, feature, missing, _ = (whole(lists[name], *bounds, name) for name, bounds in _WHOLE.items())
    numbers = {name: reals(lists[name], _SINGLE, name) for name in _REALS}
    sizes = np.array([len(nodes) for nodes in lists["split_type"]], np.int64)
    kept = feature != _PRUNED
    left[~kept] = right[~kept] = -1
    above, leaf = check_trees(sizes, left, right, ~kept), left == -1
    check_splits(feature[~leaf], columns, numbers["split_conditions"][leaf])
    roots = np.cumsum(sizes) - sizes
    root, place = np.repeat(roots, sizes), np.cumsum(kept) - 1

    def renumbered(nodes: Whole, none: int) -> Whole:
        return np.where(nodes == -1, none, place[nodes + root] - place[root])

    nodes = {
        "left_children": renumbered(left, -1).astype(">i4"),
        "right_children": renumbered(right, -1).astype(">i4"),
        "parents": renumbered(above, _PRUNED).astype(">i4"),
        "split_indices": np.where(leaf, 0, feature).astype(">i4"),
        "default_left": np.where(leaf, 0, missing).astype("|u1"),
        "split_type": np.zeros(len(leaf), "|u1"),
        **{name: x.astype(">f4") for name, x in numbers.items()},
    }
    nodes = {name: x[kept] for name, x in nodes.items()}
    counts = np.add.reduceat(kept, roots, dtype=np.int64)
    made = []
    for i, end in enumerate(np.cumsum(counts).tolist()):
        said = {"num_deleted": "0", "num_feature": str(columns), "num_nodes": str(counts[i]), "size_leaf_vector": "1"}
        arrays = {name: x[end - counts[i] : end] for name, x in nodes.items()}
        made.append({"id": i, "tree_param": said, **arrays, **_NO_CATEGORIES})
    return made


def _count(text: Any) -> int:
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError(f"{text!r:.40} is no count")
    return int(text)


def _number(text: Any) -> float:
    """A number in scientific notation; newer versions put brackets around it."""
    if not isinstance(text, str) or not re.fullmatch(r"\[?[-+.0-9Ee]{1,40}\]?", text):
        raise ValueError(f"{text!r:.40} is no number")
    return float(text.strip("[]"))


def _ubjson(value: Any) -> bytes:
    """Plain data and arrays in the form that XGBoost reads fastest, to the last bit of every number."""
    if isinstance(value, np.ndarray):
        return b"[$" + _TYPES[value.dtype.str] + b"#" + _ubjson(len(value)) + value.tobytes()
    if isinstance(value, dict):
        return b"{" + b"".join(_ubjson(key)[1:] + _ubjson(item) for key, item in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#" + _ubjson(len(value)) + b"".join(map(_ubjson, value))
    if isinstance(value, str):
        return b"S" + _ubjson(len(value)) + value.encode()
    return b"d" + struct.pack(">f", value) if isinstance(value, float) else b"L" + struct.pack(">q", value)
