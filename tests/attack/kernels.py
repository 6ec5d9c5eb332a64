"""The C kernels, compiled with ASan and UBSan, on tensors of any shape, stride, type and value: numbers of plain torch.

The sanitizers must be there before Python is, so tries are made by a second Python that is told their seeds.
"""

import functools
import hashlib
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
EXTREME = [
    0.0,
    -0.0,
    1e-45,
    1e-38,
    -1e-20,
    0.5,
    1.0,
    -30.0,
    88.0,
    -104.0,
    1e4,
    -1e10,
    3e38,
    -3e38,
    math.inf,
    -math.inf,
    math.nan,
]


def runtime():
    """The library of ASan that gcc has; None where there is none."""
    if shutil.which("gcc") is None:
        return None
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return found if os.path.isabs(found) else None


def lacking():
    """Why it cannot be tried here."""
    return None if runtime() else "needs gcc with ASan and UBSan"


def prepare():
    """The path of the library, compiled from the sources as they are."""
    sys.path.insert(0, str(ROOT))
    import hatch_build

    from fbeta.losses.kernels import cpu

    place = Path(tempfile.mkdtemp(prefix="fbeta-attack-kernels-"))
    sources = sorted(cpu.LIBRARY.parent.glob("cpu*.[ch]"))
    for file in sources:
        shutil.copy(file, place)
    library = place / cpu.LIBRARY.name
    flags = [flag for flag in hatch_build.FLAGS if not flag.startswith("-O")]
    subprocess.run(["gcc", *flags, *SANITIZED, str(place / "cpu.c"), "-o", str(library)], check=True)
    whole = b"".join(file.read_bytes() for file in [*sources, library])
    library.with_suffix(".sha256").write_text(hashlib.sha256(whole).hexdigest())
    return library


@functools.cache
def second(library):
    """The Python that has the sanitizers; what it says on its own goes to a file."""
    options = {
        "LD_PRELOAD": runtime(),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:hard_rss_limit_mb=4000",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    err = open(f"{library}.{os.getpid()}.err", "wb")  # noqa: SIM115
    path = os.pathsep.join([str(ROOT / "tests"), *filter(None, sys.path)])
    words = [sys.executable, "-m", "attack.kernels", str(library)]
    env = os.environ | options | {"PYTHONPATH": path}

    def unlimited():  # ASan takes terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)

    how = {"stdin": -1, "stdout": -1, "stderr": err, "text": True, "preexec_fn": unlimited}
    return subprocess.Popen(words, env=env, **how), Path(err.name)


def attempt(library, luck, folder):
    """One batch and one loss."""
    process, err = second(library)
    process.stdin.write(f"{luck.randrange(2**60)}\n")
    process.stdin.flush()
    verdict = process.stdout.readline().strip()
    if not verdict:
        process.wait()
        second.cache_clear()
        (folder / "err").write_bytes(err.read_bytes())
        lines = [
            line for line in err.read_text(errors="replace").splitlines() if "ERROR" in line or "runtime error" in line
        ]
        raise AssertionError(f"the process ended with {process.returncode}: {' '.join(lines)[:200]}")
    assert not verdict.startswith("other"), verdict
    return verdict


def serve(library):
    """Make the tries that are asked for; in the second Python."""
    import torch

    from fbeta.losses import kernels
    from fbeta.losses.kernels import cpu

    cpu.LIBRARY = Path(library)
    assert cpu.available()
    kernels._cpu.cache_clear()
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        luck = random.Random(int(line))
        torch.set_num_threads(luck.choice([1, 1, 2, 3]))
        cpu._library().fbeta_level(luck.choice([0, 0, 1, 2, 3]))
        print(compared(luck), flush=True)


def compared(luck):
    """The same loss by the kernels and by plain torch."""
    import torch

    from fbeta.losses import kernels

    torch.manual_seed(luck.randrange(2**31))
    z, y, w = batch(luck)
    options, task = (
        ({"ignore_index": luck.choice([-100, 0, 1, 255])} if luck.random() < 0.3 else {}),
        luck.random() < 0.5,
    )
    factor = luck.choice([1.0, 1.0, 0.0, -2.5, 1e-30, 1e30])
    choice, training = luck.randrange(9), luck.random() < 0.7
    outcome = []
    for compiled in (True, False):
        kernels.ENABLED = compiled
        try:
            loss = made(choice, options)
            loss.train(training)
            x = z.clone(memory_format=torch.preserve_format) if task else z
            x = x.detach().requires_grad_()
            value = loss(x, y) if w is None else loss(x, y, weight=w)
            (gradient,) = torch.autograd.grad(value * factor, x)
            outcome.append((value.detach().double(), gradient.double()))
        except (ValueError, TypeError) as error:
            outcome.append(str(error))
    first, second = outcome
    if isinstance(first, str) or isinstance(second, str):
        return "refused" if first == second else f"other: {first!r:.150} and {second!r:.150}"
    for a, b, near in ((first[0], second[0], 2e-5), (first[1], second[1], 2e-2 if z.dtype == torch.bfloat16 else 2e-4)):
        if second[0].isnan() and first[0].isnan():  # a clear NaN: nobody trains on with it
            break
        size = float(b[b.isfinite()].abs().max()) if b.isfinite().any() else 0.0
        # Where all is saturated, plain torch rounds 1 - f to whole units of its precision, and C does not.
        unit = 6e-8 / max(1, len(z)) if z.dtype != torch.float64 else 0.0
        rounding = near * size + max(unit, 1e-12) * abs(factor)
        if not torch.allclose(a, b, rtol=near, atol=rounding + 1e-36, equal_nan=True):
            return (
                f"other: {type(loss).__name__} of {tuple(z.shape)} {z.dtype}: {a.flatten()[:4]} and {b.flatten()[:4]}"
            )
    return f"{str(z.dtype).removeprefix('torch.')}: the same"


def made(choice, options):
    from fbeta import FBeta, Kappa, SoftLoss, SurrogateLoss, TangentLoss

    kinds = [
        lambda: SurrogateLoss(FBeta(2), prevalence=0.1, **options),
        lambda: SurrogateLoss(FBeta(0.5), prevalence=0.9, q=0.4, **options),
        lambda: SurrogateLoss(Kappa(), prevalence=0.3, **options),
        lambda: SurrogateLoss(FBeta(2), prevalence=0.1, blend=0.3, **options),
        lambda: TangentLoss(FBeta(2), prevalence=0.1, **options),
        lambda: TangentLoss(FBeta(2), q=0.5, **options),
        lambda: TangentLoss(Kappa(), q=1.0, counts="soft", **options),
        lambda: SoftLoss(FBeta(1), **options),
        lambda: SoftLoss(FBeta(1), prevalence=0.1, **options),
    ]
    return kinds[choice]()


def batch(luck):
    """Logits, targets and weights: views of larger tensors, of any layout, with values at the edges."""
    import torch

    n = luck.choice([0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 255, 1023, 1024, 1025, 2047, 3000, 40_000, 70_001])
    dtype = luck.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64])
    z = (
        laid_out(torch.randn(n) * luck.choice([1, 10, 1000]), luck).to(dtype)
        if luck.random() < 0.5
        else laid_out((torch.randn(n) * luck.choice([1, 10])).to(dtype), luck)
    )
    kind = luck.choice([dtype, torch.float32, torch.bfloat16, torch.bool, torch.uint8, torch.int32, torch.int64])
    y = laid_out((torch.rand(n) < 0.3).to(kind), luck)
    if luck.random() < 0.2 and kind.is_floating_point:
        y = torch.rand(n).to(kind)
    w = laid_out(torch.rand(n) * luck.choice([1.0, 1e-40, 1e30]), luck) if luck.random() < 0.4 else None
    for tensor, share in ((z, 0.4), (y, 0.1), (w, 0.1)):
        if tensor is not None and n and luck.random() < share:
            for _ in range(luck.choice([1, 5, 50])):
                value = luck.choice(EXTREME if tensor.is_floating_point() else [0, 1, 0, 1, 2, 255, 100])
                tensor[luck.randrange(n)] = value
    return z, y, w


def laid_out(x, luck):
    """The same values at another place in memory: after an offset, with a stride, or without either."""
    import torch

    how, n = luck.randrange(4), len(x)
    if how == 0:
        return x
    if how == 1:
        whole = torch.zeros(n + 9, dtype=x.dtype)
        view = whole[luck.randrange(1, 9) :][:n]
    elif how == 2:
        view = torch.zeros(n * 3 + 3, dtype=x.dtype)[:: luck.choice([2, 3])][:n]
    else:
        return x.flip(0).clone()
    view.copy_(x)
    return view


if __name__ == "__main__":
    serve(sys.argv[1])
