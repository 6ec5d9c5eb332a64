"""Compile the fused CPU losses when the package is built; without a compiler the package does without.

``pip install`` runs this through hatchling; ``python hatch_build.py`` compiles in place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FUSED = Path("src", "fbeta", "losses", "kernels")
LIBRARY = FUSED / ("_cpu" + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so"))
#: What the library is compared with before it is loaded: the SHA-256 of its sources and itself.
SEAL = LIBRARY.with_suffix(".sha256")
FLAGS = [
    "-O3",
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fopenmp-simd",
]
# The OpenMP runtime is torch's, found when the library is loaded.
LATE = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []


class FusedHook(BuildHookInterface[Any]):
    """Put the compiled library into the wheel (or beside its source, for an editable install)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel with the platform if that worked."""
        if self.target_name == "wheel" and compile_fused(Path(self.root)):
            build_data["artifacts"] += [LIBRARY.as_posix(), SEAL.as_posix()]
            # Plain C for any Python 3 of this platform.
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"


def compile_fused(root: Path) -> bool:
    """Compile `cpu.c` and its headers; say in one line why not, and leave no library behind, where that fails."""
    library, sources = root / LIBRARY, sorted((root / FUSED).glob("cpu*.[ch]"))
    defined = f'-DFBETA_SOURCE="{digest(*sources)[:16]}"'
    why = "no C compiler was found (CC, cc, gcc, clang)"
    for compiler in compilers():
        try:
            with tempfile.TemporaryDirectory(dir=library.parent) as folder:
                fresh = Path(folder) / library.name
                command = [*compiler, *FLAGS, defined, str(root / FUSED / "cpu.c"), "-o", str(fresh), *LATE]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode == 0:
                    (root / SEAL).write_text(digest(*sources, fresh))
                    fresh.replace(library)  # a process that has the old one open keeps it
                    return True
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            why = f"{shlex.join(compiler)}: {next((x for x in lines if 'error' in x), lines[-1])}"
        except OSError as error:
            why = f"{shlex.join(compiler)}: {error}"
    with contextlib.suppress(OSError):  # a tree that nobody may write to; the sources tell an old library
        library.unlink(missing_ok=True)
        (root / SEAL).unlink(missing_ok=True)
    print(
        f"fbeta: the fused CPU losses were not compiled, the plain ones will serve: {why}.", file=sys.stderr, flush=True
    )
    return False


def digest(*files: Path) -> str:
    """The SHA-256 of files, one after the other."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def compilers() -> list[list[str]]:
    """The compilers to try: $CC alone if it is set, else what is on the path."""
    if os.environ.get("CC"):
        return [shlex.split(os.environ["CC"])]
    return [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)]


if __name__ == "__main__":
    sys.exit(0 if compile_fused(Path(__file__).resolve().parent) else 1)
