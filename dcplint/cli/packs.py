"""`dcplint packs`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dcplint.cli import options
from dcplint.errors import UserError

if TYPE_CHECKING:
    from packaging.version import Version

    from dcplint.contracts.contract import Pack


@click.group("packs", invoke_without_command=True)
@options.packs
@options.verbose
@click.pass_context
def command(context: click.Context, packs: tuple[Path, ...], verbose: bool) -> None:
    """List the contract packs; show one, or check one against an engine release."""
    from dcplint.contracts.packs import find_packs

    found = find_packs(packs)
    context.obj = found
    if context.invoked_subcommand is not None:
        return
    for pack in found.values():
        span = f"{pack.known[0]} to {pack.known[-1]}"
        click.echo(
            f"{pack.engine:<12} releases {span:<20} "
            f"{len(pack.capabilities)} capabilities, {len(pack.gates)} gates   {pack.path}"
        )


@command.command("show")
@click.argument("engine")
@click.option(
    "--release", metavar="RELEASE", help="The facts of this release; default: the newest."
)
@click.pass_obj
def show(packs: Mapping[str, Pack], engine: str, release: str | None) -> None:
    """Print what the pack of ENGINE says of one release, each fact with its source."""
    pack = _pack(packs, engine)
    contract = pack.at(_version(release) if release else pack.known[-1])
    click.echo(f"{pack.engine} {contract.version} (facts of {contract.effective}), {pack.path}")
    click.echo("\nbase classes")
    for engine_class in contract.classes:
        click.echo(f"  {engine_class.role:<9} {engine_class.name}  [{engine_class.source.text}]")
    click.echo("\ncapabilities")
    for capability in contract.capabilities:
        default = capability.default_at(contract.effective)
        value = f"default {default.value}" if default else f"asks {capability.delegates}()"
        source = default.source if default else capability.source
        click.echo(f"  {capability.role:<9} {capability.name}: {value}  [{source.text}]")
    click.echo("\ngates")
    for gate in contract.gates:
        click.echo(f"  {gate.stage:<9} {gate.capability}: {gate.outcome}  [{gate.source.text}]")


@command.command("check")
@click.argument("engine", required=False)
@click.option(
    "--engine-path",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="An unpacked release, or the folder an engine is installed in.",
)
@click.option("--release", metavar="RELEASE", help="Which release it is, where it doesn't say.")
@click.pass_obj
def check(
    packs: Mapping[str, Pack], engine: str | None, engine_path: Path, release: str | None
) -> int:
    """Compare a pack with an engine release: what it names exists and says what the pack says.

    Exits 0 where they agree, 1 where they do not.
    """
    from dcplint.contracts.check import disagreements
    from dcplint.program.engine import package_parent, release_in
    from dcplint.program.release import Release

    candidates = [_pack(packs, engine)] if engine else list(packs.values())
    found = [(p, directory) for p in candidates if (directory := package_parent(engine_path, p))]
    if not found:
        names = ", ".join(pack.package for pack in candidates)
        if not engine_path.exists():
            raise UserError(f"{engine_path}: no such file or directory")
        raise UserError(f"{engine_path}: holds no package of a known engine ({names})")
    status = 0
    for pack, directory in found:
        version = (
            _version(release)
            if release
            else release_in(directory, pack, f"{pack.package}/__init__.py")
        )
        if version is None:
            raise UserError(
                f"{engine_path}: does not say which release it is; name it by --release"
            )
        contract = pack.at(version)
        count = 0
        for problem in disagreements(contract, Release(directory, contract)):
            count += 1
            where = f" ({problem.place.path}:{problem.place.line})" if problem.place else ""
            click.echo(f"{problem.source.pack}:{problem.source.line}: {problem.message}{where}")
        verdict = f"{count} disagreement{'s' * (count != 1)}" if count else "agrees"
        click.echo(f"{pack.path} against {pack.engine} {version}: {verdict}", err=True)
        status = max(status, int(count > 0))
    return status


def _pack(packs: Mapping[str, Pack], engine: str) -> Pack:
    if engine not in packs:
        raise UserError(f"no pack describes {engine!r}; there are: {', '.join(packs)}")
    return packs[engine]


def _version(text: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion as error:
        raise UserError(f"--release {text}: not a release number") from error
