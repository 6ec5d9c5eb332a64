"""What the tests of the library and of the reproduction share."""

import os
import shutil
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from range_server import serve
from waiting import HANG

# On a busy machine an example may take long; and what is found today must be found tomorrow.
settings.register_profile("fbeta", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# `make attack` looks for what was not found yet.
settings.register_profile("attack", settings.get_profile("fbeta"), derandomize=False, database=None, print_blob=True)
settings.load_profile(os.environ.get("FBETA_HYPOTHESIS", "fbeta"))

# Doctests of modules that need Triton are collected only where it is installed.
NEED_TRITON = [
    "src/fbeta/losses/kernels/cuda.py",
    "src/fbeta/losses/kernels/cuda_formula.py",
    "src/fbeta/losses/kernels/cuda_kernels.py",
    "reproduction/src/fbeta_reproduction/engine/kernels/accelerated.py",
    "reproduction/src/fbeta_reproduction/engine/kernels/convolution.py",
    "reproduction/src/fbeta_reproduction/engine/kernels/normalisation.py",
    "reproduction/src/fbeta_reproduction/engine/kernels/pooling.py",
]
collect_ignore = [] if find_spec("triton") else NEED_TRITON


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """A cache of data sets for one test, which must not meet that of the person who runs it."""
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))  # between two tries
    monkeypatch.setattr("fbeta.datasets.download.TIMEOUT", HANG)


@pytest.fixture
def server():
    """A server of files that breaks off, forgets and lies as it is told."""
    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    """A real browser, for tests of pages: what people see and press."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'fbeta[dev]'")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium: apt install chromium")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=flags, timeout=1000 * HANG)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a file; at the end nothing may have been complained about or asked for."""
    opened, complaints, requests = [], [], []

    def go(file, *, width=1280, scheme="light", scripts=True):
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=scripts)
        context.set_default_timeout(1000 * HANG)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text))
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on("dialog", lambda d: (complaints.append(d.message), d.dismiss()))
        page.on("request", lambda r: requests.append(r.url))
        page.goto(file.as_uri())
        opened.append((context, file.as_uri()))
        return page

    yield go
    for context, _ in opened:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [uri for _, uri in opened]
