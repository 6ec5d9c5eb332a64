"""Maps decided one by one: mean Dice and pixels per second beside rankseg, one half and one cut. See decisions.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from decisions_rows import rankseg
from decisions_tables import Floats
from scipy.ndimage import gaussian_filter, uniform_filter
from sklearn.datasets import load_sample_images
from sklearn.linear_model import LogisticRegression

from fbeta import Decision, decide_rows, tune
from fbeta.decisions import row_scores

#: Images to choose the common cut on, and as many later ones; their side; how often times are taken.
IMAGES, SIDE, TIMES = 48, 96, 5
BESIDE = ("one half", "common cut")
SHARES = (0.002, 0.02, 0.1, 0.3)
#: How far probabilities are from what is true: log odds times so much.
CONFIDENCE = {"calibrated": 1.0, "over-confident": 2.0}
#: The sides of the photos' tiles.
TILE = 61
OURS, CALIBRATED = "decide_rows", "decide_rows, calibrated"


def fields(rng: np.random.Generator, share: float, blobs: bool) -> tuple[Any, Floats]:
    """Truth and its probabilities: smooth random fields, or a few round blobs whose edges are unsure."""
    if blobs:
        grid, z = np.mgrid[:SIDE, :SIDE], np.full((2 * IMAGES, SIDE, SIDE), -7.0)
        for image in z:
            radius = SIDE * np.sqrt(share / np.pi / 2) * rng.uniform(0.3, 1.7, size=2)
            for r, centre in zip(radius, rng.uniform(0, SIDE, size=(2, 2)), strict=True):
                away = np.hypot(*(grid - centre[:, None, None])) - r
                np.maximum(image, 3 - 12 * away / (r + 2), out=image)
        z = np.clip(z, -7, 3)
    else:
        z = gaussian_filter(rng.normal(size=(2 * IMAGES, SIDE, SIDE)), (0, SIDE / 12, SIDE / 12))
        z = 3 * z / z.std() + rng.normal(size=(2 * IMAGES, 1, 1))
        z -= np.quantile(z, 1 - share)
    p: Floats = 1 / (1 + np.exp(-z))
    return rng.random(p.shape) < p, p


def photos(rng: np.random.Generator) -> tuple[Any, Floats]:
    """Tiles of the photos that come with scikit-learn: which pixels are colourful, told from a noisy grey picture."""
    truth, x = [], []
    for picture in load_sample_images().images:
        colour = picture.astype(float) / 255
        grey = colour.mean(2) + rng.normal(scale=0.15, size=colour.shape[:2])
        spread = colour.max(2) - colour.min(2)
        smooth = [uniform_filter(grey, size) for size in (1, 3, 7, 15)]
        rough = [uniform_filter((grey - smooth[-1]) ** 2, size) for size in (5, 15)]
        planes = [*smooth, *(s**2 for s in smooth), *rough, spread > 0.4]
        tiles = [
            np.stack([plane[i : i + TILE, j : j + TILE] for plane in planes])
            for i in range(0, colour.shape[0] - TILE, TILE)
            for j in range(0, colour.shape[1] - TILE, TILE)
        ]
        truth += [tile[-1] > 0 for tile in tiles]
        x += [tile[:-1] for tile in tiles]
    order = rng.permutation(len(x))
    y, features = np.stack(truth)[order], np.moveaxis(np.stack(x)[order], 1, -1)
    learn = len(y) // 3
    model = LogisticRegression(max_iter=500).fit(features[:learn].reshape(-1, features.shape[-1]), y[:learn].ravel())
    rest = features[learn:]
    p: Floats = model.predict_proba(rest.reshape(-1, rest.shape[-1]))[:, 1].reshape(rest.shape[:-1])
    return y[learn:], p


def judged(y: Any, p: Floats) -> dict[str, list[float]]:
    """Dice of each image of the later half by every way; the common cut is the best one on the first half."""
    half = len(y) // 2
    flat = p[:half].reshape(half, -1)
    cut = tune(flat, y[:half].reshape(half, -1), "f1", average="samples", empty=0.0)
    later, pixels = p[half:], p[half:].reshape(len(p) - half, -1)
    found = {
        "one half": later >= 0.5,
        "common cut": cut.decide(later),
        "rankseg": rankseg(pixels, "F1", 0.5),
        "rankseg, unpruned": rankseg(pixels, "F1", 0.0),
        OURS: decide_rows(later, "f1", empty=0.0),
        CALIBRATED: decide_rows(
            Decision.fit(flat.ravel(), y[:half].ravel(), "f1", kind="probability").probability(later), "f1", empty=0.0
        ),
    }
    return {
        way: np.asarray(row_scores(np.reshape(called, later.shape), y[half:], "f1", empty=0.0)).tolist()
        for way, called in found.items()
        if called is not None
    }


def speed(rng: np.random.Generator) -> dict[str, float]:
    """Million pixels per second of processor time on one core, the best of some runs."""
    import torch

    torch.set_num_threads(1)
    z = gaussian_filter(rng.normal(size=(8, 512, 512)), (0, 30, 30))
    p = (1 / (1 + np.exp(1.5 - 3 * z / z.std()))).astype(np.float32)
    rows = p.reshape(len(p), -1)
    calls: dict[str, Callable[[], Any]] = {
        OURS: lambda: decide_rows(p, "f1"),
        f"{OURS}, tensor": lambda: decide_rows(torch.from_numpy(p), "f1"),
        "rankseg": lambda: rankseg(rows, "F1", 0.5),
        "rankseg, screening": lambda: rankseg(rows, "F1", 0.5, safe_screening=True),
    }
    found = {}
    for way, call in calls.items():
        if call() is None:
            continue
        took = []
        for _ in range(TIMES):
            start = time.process_time()
            call()
            took.append(time.process_time() - start)
        found[way] = p.size / min(took) / 1e6
    return found


def on_gpu() -> dict[str, float]:
    """Million pixels per second on a GPU, if there is one: of large images and of many small ones.

    Alone: cd benchmarks && python -c "import decisions_maps as m; print(m.on_gpu())"
    """
    import torch

    found: dict[str, float] = {}
    for shape in ((32, 1024, 1024), (4096, 64, 64)) if torch.cuda.is_available() else ():
        p = torch.rand(shape, device="cuda") ** 3
        rows = p.flatten(1)
        calls: dict[str, Callable[[], Any]] = {
            OURS: partial(decide_rows, p, "f1"),
            "rankseg": partial(rankseg, rows, "F1", 0.5),
        }
        for way, call in calls.items():
            if call() is None:
                continue
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(TIMES):
                call()
            torch.cuda.synchronize()
            size = " × ".join(map(str, shape))
            found[f"{way}, {size}"] = TIMES * p.numel() / (time.perf_counter() - start) / 1e6
    return found


def measure(folder: Path | None, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """Mean Dice on made maps and photos, and times."""
    del folder, rows, cache, jobs
    found: dict[str, Any] = {}
    cases = [(f"{kind}, {share:g}, {name}", kind, share, by) for kind in ("fields", "blobs") for share in SHARES
             for name, by in CONFIDENCE.items()]  # fmt: skip
    for number, (case, kind, share, by) in enumerate([*cases, ("photos", "photos", 0.0, 1.0)]):
        scores: dict[str, list[float]] = {}
        for repeat in range(repeats):
            rng = np.random.default_rng([number, repeat])
            y, p = photos(rng) if kind == "photos" else fields(rng, share, kind == "blobs")
            p = p**by / (p**by + (1 - p) ** by)
            for way, values in judged(y, p).items():
                scores.setdefault(way, []).extend(values)
        found[case] = {way: float(np.mean(values)) for way, values in scores.items()} | {
            "above rankseg": _apart(scores, "rankseg, unpruned")
        }
        print(case, flush=True)
    return {
        "images": repeats * IMAGES,
        "repeats": repeats,
        "cases": found,
        "speed": speed(np.random.default_rng(0)),
        "gpu": on_gpu(),
    }


def _apart(scores: dict[str, list[float]], way: str) -> list[float] | None:
    """How far above a way ours is, and the standard error over images."""
    if way not in scores:
        return None
    apart = np.subtract(scores[OURS], scores[way])
    return [float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(apart.size))]


def render(found: dict[str, Any]) -> list[str]:
    """One row per kind of map."""
    ways = [way for way in next(iter(found["cases"].values())) if way != "above rankseg"]
    lines = [
        "## Maps",
        "",
        f"{found['images']} images of {SIDE} × {SIDE} pixels per case (photos: {found['repeats']} times all later "
        "tiles), drawn pixel by pixel from the probabilities; over-confident ones have twice the log odds. Photos that "
        "come with scikit-learn: which pixels are colourful, from a noisy grey picture. Mean Dice of the images; an "
        "image without positives scores 0. The common cut is the best one on as many other images, and `calibrated` "
        "learns from all their pixels together. `apart` is decide_rows less rankseg without its pruning, on the same "
        "probabilities, and the standard error over images. `python benchmarks/decisions.py maps --repeats 3`",
        "",
        "| maps, share of positives | " + " | ".join(ways) + " | apart |",
        "|---|" + "---|" * (len(ways) + 1),
    ]
    for case, row in found["cases"].items():
        apart = row["above rankseg"]
        shown = "" if apart is None else f"{apart[0]:+.5f} ± {apart[1]:.5f}"
        lines.append(f"| {case} | " + " | ".join(f"{row[way]:.4f}" for way in ways) + f" | {shown} |")
    rates = ", ".join(f"{way} {rate:.0f}" for way, rate in found["speed"].items())
    lines += ["", f"Million pixels per second of one core, eight images of 512 × 512, single precision: {rates}."]
    if found["gpu"]:
        rates = ", ".join(f"{way} {rate:,.0f}" for way, rate in found["gpu"].items())
        lines += ["", f"Million pixels per second of a GPU: {rates}."]
    return [*lines, ""]


def summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    cases, rates = found["cases"], found["speed"]
    least = max(0.0, -min((row["above rankseg"] or [0.0])[0] for row in cases.values()))
    gains = {
        by: [
            np.mean([row[CALIBRATED] - row[way] for case, row in cases.items() if case.endswith(by)]) for way in BESIDE
        ]
        for by in (" calibrated", " over-confident")
    }
    said = [f"{100 * half:.1f} and {100 * cut:.1f} with{by}" for by, (half, cut) in gains.items()]
    theirs = (
        ""
        if "rankseg" not in rates
        else (
            f" (rankseg {rates['rankseg']:.0f}, and {rates['rankseg, screening']:.0f} with its experimental screening)"
        )
    )
    photo = cases["photos"]
    return (
        f"**Maps**, {found['images']} images per case: `decide_rows` on pixels calibrated together has a mean Dice "
        f"above that of one half and of the best common cut, in hundredths, by {' and by '.join(said)} probabilities; "
        f"in no case is it more than {least:.4f} below the package rankseg (without its pruning) on the same "
        f"probabilities. On photos, where pixels depend on each other, it is "
        f"{photo[OURS]:.3f} as it is and {photo[CALIBRATED]:.3f} "
        f"calibrated (common cut {photo[BESIDE[1]]:.3f}, rankseg {photo['rankseg, unpruned']:.3f}). One core "
        f"decides {rates[OURS]:.0f} million pixels per second{theirs}; "
        "[decisions-maps.md](../benchmarks/results/decisions-maps.md)."
    )
