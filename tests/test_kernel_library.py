"""A compiled library that is damaged, foreign or missing: one warning, and plain torch serves. Never a signal."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from attack.processes import attack
from fbeta import FBeta
from fbeta.losses import SurrogateLoss, TangentLoss, kernels
from fbeta.losses.kernels import cpu

ROOT = Path(__file__).resolve().parents[1]
needs_library = pytest.mark.skipif(
    not (cpu.LIBRARY.exists() and hasattr(os, "fork")), reason="the library was not compiled, or nothing can be forked"
)
FAULTS = {
    "a text": lambda whole: b"no library\n",
    "nothing": lambda whole: b"",
    **{f"cut at {share} %": lambda whole, share=share: whole[: len(whole) * share // 100] for share in (4, 50, 95)},
    "a changed byte": lambda whole: whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:],
    "zeros in it": lambda whole: whole[:4096] + bytes(8192) + whole[12288:],
    "more at its end": lambda whole: whole + b"\0",
}


def values():
    """Losses and gradients of a batch that the compiled kernels take."""
    z = torch.linspace(-3, 3, 100, requires_grad=True)
    y = (torch.arange(100) % 3 == 0).float()
    out = []
    for loss in (SurrogateLoss(FBeta(2), prevalence=0.3), TangentLoss(FBeta(2))):
        value = loss(z, y)
        out += [value.detach()[None], *torch.autograd.grad(value, z)]
    return torch.cat(out)


@pytest.fixture
def place(tmp_path):
    """A folder with the library, its sources and its seal."""
    for file in (*cpu.LIBRARY.parent.glob("cpu*.[ch]"), *cpu.LIBRARY.parent.glob("_cpu.*")):
        shutil.copy(file, tmp_path)
    return tmp_path / cpu.LIBRARY.name


def seal(library):
    """Write the checksum that the build would write."""
    files = [*sorted(library.parent.glob("cpu*.[ch]")), library]
    whole = b"".join(file.read_bytes() for file in files)
    library.with_suffix(".sha256").write_text(hashlib.sha256(whole).hexdigest())


def used(library):
    """What a process that finds this library does: kernels or plain torch, after how many warnings; in a child."""
    plain = values()

    def attempt(number):
        cpu.LIBRARY = library
        kernels._cpu.cache_clear()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert torch.allclose(values(), plain, rtol=1e-5, atol=1e-7)
            values()
        said = [str(warning.message) for warning in heard]
        assert all("losses on the CPU run in plain torch" in sentence for sentence in said), said
        return f"{'plain' if kernels._cpu() is None else 'compiled'} {len(said)}"

    result = attack(attempt, count=1, workers=1)
    assert result["faults"] == []
    (verdict,) = result["verdicts"]
    return verdict


@needs_library
def test_the_library_that_was_built_is_used(place):
    assert used(place) == "compiled 0"


@needs_library
@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_library_is_not_loaded(place, fault):
    place.write_bytes(FAULTS[fault](place.read_bytes()))
    assert used(place) == "plain 1"


@needs_library
def test_a_foreign_library_is_not_loaded(place):
    foreign = next(Path(p.split()[-1]) for p in Path("/proc/self/maps").read_text().splitlines() if "/libm.so" in p)
    shutil.copyfile(foreign, place)
    assert used(place) == "plain 1"
    seal(place)  # one that has a seal lacks the functions
    assert used(place) == "plain 1"


@needs_library
def test_what_is_no_library_in_spite_of_its_seal(place):
    place.write_bytes(b"no library\n")
    seal(place)
    assert used(place) == "plain 1"


@needs_library
def test_a_library_of_an_older_version_is_not_loaded(place):
    """Its sources were others, so its functions may take other structures."""
    with open(place.parent / "cpu_rows.h", "a") as header:
        header.write("/* a field more */\n")
    assert used(place) == "plain 1"


@needs_library
@pytest.mark.parametrize("what", ["library", "seal", "both", "a folder", "no text"])
def test_what_is_missing(place, what):
    if what in ("library", "both", "a folder"):
        place.unlink()
    if what in ("seal", "both"):
        place.with_suffix(".sha256").unlink()
    if what == "a folder":
        place.mkdir()
    if what == "no text":
        place.with_suffix(".sha256").write_bytes(bytes(range(256)))
    assert used(place) == "plain 1"


@needs_library
def test_a_new_process_with_half_a_library(tmp_path):
    """The package itself, copied: the warning is printed once, and the process ends well."""
    shutil.copytree(ROOT / "src" / "fbeta", tmp_path / "fbeta", ignore=shutil.ignore_patterns("__pycache__"))
    library = tmp_path / cpu.LIBRARY.relative_to(ROOT / "src")
    library.write_bytes(library.read_bytes()[: library.stat().st_size // 2])
    code = """
import torch, fbeta
z, y = torch.linspace(-3, 3, 100), (torch.arange(100) % 3 == 0).float()
for _ in range(2):
    value = fbeta.SurrogateLoss(fbeta.FBeta(2), prevalence=0.3)(z, y)
print(fbeta.__file__, float(value))
"""
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Warning") == done.stderr.count("losses on the CPU run in plain torch") == 1
    file, value = done.stdout.split()
    assert Path(file).is_relative_to(tmp_path)
    assert float(value) == pytest.approx(float(values()[0]), rel=1e-6)


def test_a_kernel_without_its_library_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(cpu, "LIBRARY", tmp_path / "_cpu.so")
    with pytest.warns(UserWarning, match="No such file.*Install fbeta again with a C compiler at hand"):
        assert not cpu.available()
    assert not cpu.available()
    z = torch.zeros(2)
    with pytest.raises(RuntimeError, match="compiled losses are missing"):
        cpu.CpuRows(z, z, None, None).run("tangent", (0.5, 0.5, 0.0), False, 1.0, True)


# ---- the build ----


@pytest.fixture
def build(tmp_path):
    """The build's hook, and a tree of C sources with a library of before."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / module.FUSED).mkdir(parents=True)
    for file in cpu.LIBRARY.parent.glob("cpu*.[ch]"):
        shutil.copy(file, tmp_path / module.FUSED)
    (tmp_path / module.LIBRARY).write_bytes(b"old")
    (tmp_path / module.SEAL).write_bytes(b"old")
    return module


@needs_library
@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
def test_a_build_seals_what_it_compiles(monkeypatch, build, tmp_path):
    monkeypatch.setattr(build, "FLAGS", ["-O1", *build.FLAGS[1:]])  # sooner done
    assert build.compile_fused(tmp_path)
    assert used(tmp_path / build.LIBRARY) == "compiled 0"


@needs_library
def test_a_tree_that_cannot_be_written(monkeypatch, capfd, build, tmp_path):
    def refuse(*arguments, **options):
        raise OSError(30, "Read-only file system")

    seal(tmp_path / build.LIBRARY)
    with open(tmp_path / build.FUSED / "cpu.c", "a") as source:
        source.write("/* newer */\n")
    monkeypatch.setenv("CC", "cc")
    with monkeypatch.context() as patch:
        patch.setattr(build.tempfile, "TemporaryDirectory", refuse)
        patch.setattr(build.Path, "unlink", refuse)
        assert not build.compile_fused(tmp_path)
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "plain ones will serve: cc: [Errno 30] Read-only file system." in said
    assert used(tmp_path / build.LIBRARY) == "plain 1"  # the old library stays, and does not fit


@needs_library
def test_without_a_compiler_nothing_old_is_left(monkeypatch, build, tmp_path):
    monkeypatch.setenv("CC", "false")
    assert not build.compile_fused(tmp_path)
    assert not (tmp_path / build.LIBRARY).exists()
    assert not (tmp_path / build.SEAL).exists()
    assert used(tmp_path / build.LIBRARY) == "plain 1"
