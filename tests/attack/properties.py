"""The properties that hypothesis tests, with other examples in every try: one file of tests, with a seed of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

#: Seconds without a word after which a file of tests hangs.
PATIENCE = 900
TESTS = Path(__file__).parents[1]


def prepare():
    """The files that have properties."""
    return sorted(path.name for path in TESTS.glob("test_*.py") if re.search(r"^@given\(", path.read_text(), re.M))


def attempt(made, luck, folder):
    """All properties of one file."""
    name, seed = luck.choice(made), luck.randrange(2**32)
    words = [
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "hypothesis",
        f"--hypothesis-seed={seed}",
        name,
    ]
    env = os.environ | {"FBETA_HYPOTHESIS": "attack"}
    done = subprocess.run([sys.executable, *words], cwd=TESTS, env=env, capture_output=True, text=True, check=False)
    (folder / "out").write_text(done.stdout + done.stderr)
    (folder / "again").write_text(f"cd tests && FBETA_HYPOTHESIS=attack python {' '.join(words)}\n")
    last = (done.stdout.strip().splitlines() or [""])[-1]
    assert done.returncode == 0, f"{name} with seed {seed}: {last}"
    return f"{name}: passed"
