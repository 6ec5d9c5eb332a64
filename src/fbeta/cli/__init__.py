"""The command line: one file per command. What is heavy is imported by the command that needs it."""

import sys
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from fbeta import extensions
from fbeta.cli.answers import answering, prepare, stop
from fbeta.cli.compare import compare
from fbeta.cli.data import app as data_app
from fbeta.cli.explain import explain
from fbeta.cli.fit import fit
from fbeta.cli.predict import predict
from fbeta.cli.tune import tune

__all__ = ["app", "main"]


class CommandGroup(TyperGroup):
    """The library's own commands, then those of other packages, which are looked for only if asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the help."""
        own = super().list_commands(ctx)
        return [*own, *(name for name in extensions.names(extensions.COMMANDS) if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; for one whose package is not installed, a command that says so."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        if cmd_name in extensions.names(extensions.COMMANDS):
            added = get_group(extensions.load(extensions.COMMANDS, cmd_name))
            added.name = cmd_name
            return added
        sentence = extensions.missing(extensions.COMMANDS, cmd_name)
        if sentence is None:
            return None
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        say = partial(stop, f"fbeta {sentence}")
        return TyperCommand(cmd_name, callback=say, add_help_option=False, context_settings=anything)


app = typer.Typer(name="fbeta", cls=CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(show: bool) -> None:
    if show:
        from fbeta import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train for the metric you report."""


for command in (compare, fit, predict, tune, explain):
    app.command()(command)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run the `fbeta` command."""
    try:
        with answering():
            prepare()
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich and typer end by 1
            sys.exit(0)
        raise
