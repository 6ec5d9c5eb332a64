"""The shape of the package: its layers, how the library finds it, and a README that cannot go stale."""

import ast
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import fbeta_reproduction
from fbeta import data, extensions
from fbeta.cli import app
from fbeta_reproduction import commands
from fbeta_reproduction.protocol import PRESETS, SETTINGS
from fbeta_reproduction.results.folder import read
from fbeta_reproduction.write_up import tangent_table
from fbeta_reproduction.write_up.blocks import Text
from fbeta_reproduction.write_up.machine_table import machines
from fbeta_reproduction.write_up.variant_tables import readings

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fbeta_reproduction"

# Each imports only those before it; the README lists them in this order.
LAYERS = (
    *("records", "protocol", "naming", "images", "engine", "readings", "results", "runner", "verdicts", "figures"),
    *("write_up", "status", "commands"),
)
THIRD_PARTY = {"PIL", "matplotlib", "numpy", "rich", "safetensors", "scipy", "torch", "triton", "typer"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: absolute imports only"
            alone = node.module == "fbeta_reproduction"
            yield from (f"{node.module}.{alias.name}" for alias in node.names) if alone else (node.module,)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_point_down(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for target in imported(path):
        top, _, rest = target.partition(".")
        if top == "fbeta_reproduction":
            below = rest.partition(".")[0]
            assert LAYERS.index(below) <= LAYERS.index(own), f"{own} imports {below}, which lies above it"
        elif top != "fbeta" and top not in sys.stdlib_module_names:
            assert top in THIRD_PARTY, f"{own} imports {top}"


def test_what_it_needs_is_what_it_asks_for():
    asked = (ROOT / "pyproject.toml").read_text()
    for name in THIRD_PARTY - {"triton", "torch", "matplotlib"}:  # these come with the library's extras
        assert f'"{name.lower().replace("pil", "pillow")}>=' in asked


def test_the_library_finds_it():
    (point,) = entry_points(group=extensions.COMMANDS, name="paper")
    assert point.load() is commands.app
    for name in ("cifar10", "fashion-mnist"):
        assert name in data.names()
        assert data.get(name).name == name


def test_help():
    shown = CliRunner().invoke(app, ["paper", "--help"]).stdout
    assert all(name in shown for name in ("run", "gradients", "status", "figures"))
    assert "paper" in CliRunner().invoke(app, ["--help"]).stdout
    run = CliRunner().invoke(app, ["paper", "run", "--help"]).stdout
    assert all(name in run for name in (*PRESETS, *SETTINGS))


def test_every_command_speaks_json():
    group = typer.main.get_group(commands.app)
    assert set(group.commands) == {"run", "gradients", "status", "figures"}
    for command in group.commands.values():
        assert any("--json" in parameter.opts for parameter in command.params), command.name


def test_the_readme_says_what_the_result_files_say():
    readme = " ".join((ROOT / "README.md").read_text().split())
    found = read(ROOT / "results")
    sentences = [block.text for block in (*machines(found), *readings(found)) if isinstance(block, Text)]
    assert len(sentences) >= 2  # all the time, that of the paper's own runs, and readings that are not there yet
    missing = [sentence for sentence in sentences if sentence not in readme]
    assert not missing, "\n".join(["The README does not say:", *missing])
    for name, preset in PRESETS.items():
        assert f"| `{name}` | {len(list(preset('cifar10')))} |" in readme


def test_the_library_s_readme_says_how_the_tangent_loss_did():
    readme = " ".join((ROOT.parent / "README.md").read_text().split())
    assert tangent_table.sentence(read(ROOT / "results")) in readme


def test_the_readme_walks_through_the_layers():
    readme = (ROOT / "README.md").read_text()
    table = readme[readme.index("| folder |") :]
    folders = [name for name in LAYERS if (SOURCE / name).is_dir()]
    places = [table.index(f"| [{name}/](src/fbeta_reproduction/{name})") for name in folders]
    assert places == sorted(places)
    for name in LAYERS:
        assert f"- `{name}`: " in fbeta_reproduction.__doc__ or name == "status"
