"""Comparisons that come back changed: their JSON through `fit --from`, and kept parts of a folder through `compare`.

A part without a right checksum is trained again, and the numbers are those of a folder that nobody touched.
"""

import json
import os
import tempfile
from pathlib import Path

from attack.commands import PATIENCE, aside, run  # noqa: F401
from attack.mutants import of_bytes, of_json, of_tensors

ASKED = ("--target", "fraud", "--models", "linear", "--losses", "bce,tangent", "--seeds", "2", "--folds", "2", "--json")


def prepare():
    """A table, a comparison of it, and the files that it keeps."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        aside(lambda: write_table(folder / "t.csv"))
        ended = run("compare", "t.csv", *ASKED, "--results", "kept", folder=folder)
        assert ended.judged() == "done", ended
        parts = {path.name: path.read_bytes() for path in sorted((folder / "kept").glob("*.scores"))}
        return {"table": (folder / "t.csv").read_bytes(), "json": ended.out, "parts": parts}


def write_table(path):
    from made_up_model import frame

    frame(150).write_csv(path)


def attempt(made, luck, folder):
    """One comparison that was changed."""
    (folder / "t.csv").write_bytes(made["table"])
    return (of_its_json if luck.random() < 0.6 else of_its_parts)(made, luck, folder)


def of_its_json(made, luck, folder):
    data = (of_json if luck.random() < 0.85 else of_bytes)(made["json"], luck)
    (folder / "x.json").write_bytes(data)
    verdict = run("fit", "t.csv", "--from", "x.json", "-o", "m.fbeta", folder=folder).judged()
    assert (folder / "m.fbeta").exists() == (verdict == "done")
    return f"its JSON: {verdict}"


def of_its_parts(made, luck, folder):
    from fbeta.sealed import seal, unseal

    kept = folder / "kept"
    kept.mkdir()
    for name, data in made["parts"].items():
        (kept / name).write_bytes(data)
    victim = kept / luck.choice([*made["parts"]])
    how = luck.choice(["bytes", "bytes", "another", "folder", "link", "member", "member"])
    if how == "bytes":
        victim.write_bytes(of_bytes(victim.read_bytes(), luck))
    elif how == "another":
        victim.write_bytes((kept / luck.choice([*made["parts"]])).read_bytes())
    elif how == "folder":
        victim.unlink()
        victim.mkdir()
    elif how == "link":
        victim.unlink()
        victim.symlink_to(luck.choice([victim.name, "/dev/zero", "/nowhere", "../t.csv"]))
    else:  # with a right checksum, as a stranger can make it
        members = unseal(victim.read_bytes())
        name = luck.choice([*members])
        members[name] = (of_json if name.endswith("json") else of_tensors)(members[name], luck)
        victim.write_bytes(seal(members))
    ended = run("compare", "t.csv", *ASKED, "--results", "kept", folder=folder)
    verdict = ended.judged()
    if how in ("bytes", "another", "link") and verdict == "done":
        assert timeless(ended.out) == timeless(made["json"]), "other numbers than those of a whole folder"
    assert not [name for name in os.listdir(kept) if name.startswith(".")]
    return f"its parts, {how}: {verdict}"


def timeless(data):
    """All numbers of a comparison but its times."""
    found = json.loads(data)

    def without(value):
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if k not in ("seconds", "machine")}
        return [without(v) for v in value] if isinstance(value, list) else value

    return without(found)
