"""What the text of a fitted model says of rows, worked out one by one, and how near a library comes to that."""

import json
import math

import numpy as np

#: What LightGBM takes for zero.
TINY = float(np.float32(1e-35))


def of_xgboost(data, X):
    """Scores by XGBoost's JSON; single precision."""
    learner = json.loads(data)["learner"]
    booster = learner["gradient_booster"]
    weights = booster["weight_drop"] if booster["name"] == "dart" else None
    trees = (booster["gbtree"] if weights else booster)["model"]["trees"]
    first = float(np.float32(learner["learner_model_param"]["base_score"].strip("[]")))
    leaves = np.zeros((len(X), len(trees)))
    for k, tree in enumerate(trees):
        for i, row in enumerate(X):
            node = 0
            while tree["left_children"][node] != -1:
                x, at = row[int(tree["split_indices"][node])], np.float32(tree["split_conditions"][node])
                left = tree["default_left"][node] if np.isnan(x) else np.float32(x) < at
                node = tree["left_children" if left else "right_children"][node]
            leaves[i, k] = tree["split_conditions"][node] * (weights[k] if weights else 1)
    first = math.log(first) - math.log1p(-first)
    return leaves.sum(1) + first, 1e-5 * (np.abs(leaves).sum(1) + abs(first) + 1)


def of_lightgbm(data, X):
    """Scores by LightGBM's text; double precision. Raw scores of a forest are sums, too."""
    _, *blocks = data.decode().partition("\nend of trees\n")[0].split("\nTree=")
    leaves = np.zeros((len(X), len(blocks)))
    for k, block in enumerate(blocks):
        tree = dict(line.split("=", 1) for line in block.split("\n") if "=" in line)
        names = ("left_child", "right_child", "split_feature", "decision_type")
        left, right, feature, kind = ([int(x) for x in tree[name].split()] for name in names)
        at, value = ([float(x) for x in tree[name].split()] for name in ("threshold", "leaf_value"))
        for i, row in enumerate(X):
            node = 0 if left else -1
            while node >= 0:
                x, missing = float(row[feature[node]]), kind[node] >> 2
                x = 0.0 if abs(x) <= TINY or (math.isnan(x) and missing != 2) else x
                gone = math.isnan(x) or (missing == 1 and x == 0)
                node = (left if (kind[node] & 2 if gone else x <= at[node]) else right)[node]
            leaves[i, k] = value[-node - 1]
    return leaves.sum(1), 1e-12 * (np.abs(leaves).sum(1) + 1)


def of_forest(data, X):
    """Scores by the arrays of a forest in a safetensors file: log odds of the mean share of positives."""
    tree, shares = arrays(data), []
    for row in X:
        at, found = 0, []
        for size in tree["size"]:
            node = at
            while tree["left"][node] != -1:
                goes = row[tree["feature"][node]] <= tree["threshold"][node]
                node = at + tree["left" if goes else "right"][node]
            found.append(tree["share"][node])
            at += size
        shares.append(np.mean(found))
    p = np.clip(shares, 1e-9, 1 - 1e-9)
    return np.log(p) - np.log1p(-p), np.full(len(X), 1e-6)


def arrays(data):
    """What a safetensors file holds, by name; of the types that fbeta writes."""
    end, found = 8 + int.from_bytes(data[:8], "little"), {}
    for name, about in json.loads(data[8:end]).items():
        if name != "__metadata__":
            start, stop = about["data_offsets"]
            kind = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}[about["dtype"]]
            found[name] = np.frombuffer(data[end + start : end + stop], kind).reshape(about["shape"])
    return found


def of_network(data, X):
    """Scores by the weights of a safetensors file; mostly single precision."""
    layers = {name: found.astype(np.float64) for name, found in arrays(data).items()}
    X, size = np.nan_to_num(X.astype(np.float64)), np.abs(np.nan_to_num(X.astype(np.float64)))
    for i in range(len(layers) // 2):
        weight, bias = layers[f"weight.{i}"], layers[f"bias.{i}"]
        X = np.array([[sum(row * column) for column in weight.T] for row in (np.maximum(X, 0) if i else X)]) + bias
        size = size @ np.abs(weight) + np.abs(bias)
    return X[:, 0], 1e-5 * (size[:, 0] + 1)


def calibrated(said, x):
    """Log odds by a calibration's description; beyond its limits they rise by next to nothing."""
    number = {name: float(value) for name, value in said.items() if name not in ("name", "of_logits", "at", "odds")}
    at = [float(value) for value in said.get("at", ())]
    low, high = (at[0], at[-1]) if at else (number.get("low", -math.inf), number.get("high", math.inf))
    inside, flat = np.clip(x, low, high), 1e-6 / max(high - low, np.finfo(np.float64).tiny)
    if at:
        found = np.interp(inside, at, [float(value) for value in said["odds"]]) + flat * (inside - low)
    else:
        bend = number.get("upper", number["slope"]) - number["slope"]
        found = number["slope"] * inside + bend * np.logaddexp(0.0, inside) + number["offset"]
    return found + flat * np.where(x == inside, 0.0, x - inside)
