"""`dcplint diff`."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path

import click

from dcplint import progress
from dcplint.cli import options, output
from dcplint.errors import UserError
from dcplint.report.difference import FORMATS


@click.command("diff")
@click.argument("base")
@click.argument("head", required=False)
@click.option("--output-format", type=click.Choice(list(FORMATS)), default="text")
@click.option("--output-file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--engine", metavar="NAME==RELEASE|auto", help="Judge both sides against this release."
)
@options.engine_path
@options.packs
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever has changed.")
@options.color
@options.verbose
def command(
    base: str,
    head: str | None,
    output_format: str,
    output_file: Path | None,
    engine: str | None,
    engine_path: Path | None,
    packs: tuple[Path, ...],
    exit_zero: bool,
    color: str,
    verbose: bool,
) -> int:
    """Show what changes between BASE and HEAD: capabilities, and findings.

    Both are git revisions (A...B is where the two parted) or folders. Without HEAD, a revision is
    compared with the work tree and a folder with the working directory. In a subfolder of a
    checkout, that subfolder is compared.

    Exits 1 for new findings graver than a note, or a capability that is lost.
    """
    from dcplint.checks.base import all_rules
    from dcplint.compare.capabilities import capability_changes
    from dcplint.compare.findings import finding_changes
    from dcplint.config import find_config, policy
    from dcplint.contracts.spec import parse_engine
    from dcplint.findings.catalogue import Catalogue
    from dcplint.report.difference import Difference, Side
    from dcplint.report.escape import printable
    from dcplint.run import surveys
    from dcplint.run_options import RunOptions

    catalogue = Catalogue(registered.rule for registered in all_rules())
    config = find_config((Path(head) if head and Path(head).is_dir() else Path(),), catalogue)
    try:
        wanted = parse_engine(engine) if engine else config.engine
    except ValueError as error:
        raise UserError(str(error)) from error
    both = RunOptions(
        paths=(),
        policy=policy(config, catalogue),
        config_path=config.path,
        exclude=config.exclude,
        engine=wanted,
        engine_path=engine_path or config.engine_path,
        packs=(*config.packs, *packs),
        may_be_empty=True,
    )
    with progress.shown(), ExitStack() as stack:
        trees = [_tree(name, stack) for name in (base, head or ".")]
        old, new = surveys([replace(both, paths=(tree,)) for tree in trees])
    if not old.report.files and not new.report.files:
        raise UserError("no Python files found on either side")
    names = base, head or ("." if Path(base).is_dir() else "the work tree")
    difference = Difference(
        Side(names[0], old.report),
        Side(names[1], new.report),
        capability_changes(old.states, new.states),
        finding_changes(old.report.findings, new.report.findings),
    )
    errors = [tuple(output.problems(side.report, verbose)) for side in (old, new)]
    notices = [(f"note: {n}",) for side in (old, new) for n in side.report.notices]
    for line in chain.from_iterable(dict.fromkeys((*errors, *notices))):
        click.echo(printable(line), err=True)
    view = output.view_for(color, os.environ, to_file=output_file is not None, summary=True)
    lines = FORMATS[output_format](difference, view)
    if output_file is not None:
        output.write_text(output_file, output.joined(lines))
    else:
        output.print_lines(lines)
    return 2 if any(errors) else int(difference.failed and not exit_zero)


def _tree(name: str, stack: ExitStack) -> Path:
    """The folder that `name` is, or the one that a revision is unpacked to."""
    from dcplint.source.revisions import checkout_of, commit_of, unpack

    here = Path.cwd()
    commit = None if Path(name).is_dir() else commit_of(name, here)
    if commit is None:
        if not Path(name).is_dir():
            raise UserError(f"{name}: neither a folder nor a revision of a git checkout here")
        return Path(name)
    checkout = checkout_of(here)
    target = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dcplint-"))).resolve()
    unpack(commit, checkout, target)
    inside = target / here.resolve().relative_to(checkout.resolve())
    inside.mkdir(parents=True, exist_ok=True)
    return inside
