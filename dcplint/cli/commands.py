"""The subcommands, and what becomes of errors. Imports no subcommand before it is run."""

from __future__ import annotations

from collections.abc import Sequence
from errno import ENOSPC
from importlib import import_module
from pathlib import Path

import click

from dcplint import __version__
from dcplint.errors import UserError

# Each command is `command` in the module of its name beside this one, imported when it is run.
COMMANDS = {
    "check": "Lint files and folders.",
    "confirm": "Lint, then run what was found: confirmed, refuted or inconclusive.",
    "capabilities": "Show which attention classes promise what, and who says so.",
    "baseline": "Accept the findings of today, so that only new ones are reported.",
    "diff": "Show what a change does to capabilities and findings.",
    "harness": "Fetch engines for `confirm` to run, where they are not installed.",
    "cache": "Remove what earlier runs have kept.",
    "packs": "List the contract packs, show one, or check one against a release.",
    "rule": "Explain a rule, or list all rules.",
}

_OK, _BROKEN, _INTERRUPTED = 0, 2, 130


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"dcplint.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dcplint")
def cli() -> None:
    """Find decode-context-parallelism bugs in LLM inference engines."""


def run(args: Sequence[str]) -> int:
    """Run a command line and return its exit status.

    0: nothing graver than a note. 1: findings. 2: usage, configuration or internal error.
    """
    try:
        status = cli.main(args, prog_name="dcplint", standalone_mode=False, obj=tuple(args))
        return status if isinstance(status, int) else _OK
    except click.ClickException as error:
        error.show()
        return _BROKEN
    except UserError as error:
        click.echo(f"error: {_one_line(str(error))}", err=True)
        return _BROKEN
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except Exception as error:
        outside = _outside(error)
        if outside:
            click.echo(f"error: {_one_line(outside)}", err=True)
            return _BROKEN
        # A bug of ours: also one in parsing options must reach this, so no option is asked.
        if {"-v", "--verbose"} & set(args):
            import traceback

            traceback.print_exc()
        what = _one_line(f"{type(error).__name__}: {error}")
        click.echo(f"error: dcplint failed ({what}); run again with -v to see where", err=True)
        return _BROKEN


def _outside(error: Exception) -> str | None:
    """What is wrong with the system that dcplint runs on, where that is behind an error."""
    if not isinstance(error, OSError):
        return None
    if error.errno == ENOSPC:
        return f"{error.filename or 'the output'} cannot be written: {error.strerror}"
    try:
        Path.cwd()
    except OSError as gone:
        return f"the working directory cannot be used: {gone.strerror}"
    return None


def _one_line(text: str) -> str:
    from dcplint.report.escape import printable

    return printable(text)
