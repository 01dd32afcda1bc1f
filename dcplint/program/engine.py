"""Which engine release a tree is judged against, and where that engine's source is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from dcplint import disk
from dcplint.contracts.contract import Contract, Coverage, Pack
from dcplint.contracts.join import join
from dcplint.contracts.spec import EngineSpec
from dcplint.errors import UserError
from dcplint.program.index import Index

# `__version__ = version = "0.29.0"`, annotated or not, as version files write it.
_NAME = r"(?:__version__|version)[ \t]*(?::[^=\n]*)?=[ \t]*"
_VERSION = re.compile(rf"""^[ \t]*(?:{_NAME})+["']([^"']+)""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine a tree is judged against.

    directory: where its package lies, outside the checked tree; None where it is in the tree or
    not at hand. how: how the release was found. stated: whether anything named the release.
    plugins: those of it that the tree has to do with; what their packs say is in the contract.
    """

    contract: Contract
    in_tree: bool
    directory: Path | None
    how: str
    stated: bool = True
    plugins: tuple[Engine, ...] = ()

    def joined(self, plugins: Iterable[Engine]) -> Engine:
        """This engine with plugins, whose facts stand beside its own."""
        plugins = tuple(plugins)
        pack = self.contract.pack
        for plugin in plugins:
            pack = join(pack, plugin.contract)
        return replace(self, contract=pack.at(self.contract.version), plugins=plugins)

    def notices(self) -> Iterator[str]:
        """What the user should know about the choice, one sentence each."""
        for plugin in self.plugins:
            yield from plugin.notices()
        pack, version = self.contract.pack, self.contract.version
        newest, oldest = pack.known[-1], pack.known[0]
        if not self.stated:
            yield (
                f"no {pack.engine} release is named anywhere: judged against {newest}, the newest "
                f"that {pack.path} knows; name one with --engine {pack.engine}==X.Y.Z"
            )
        elif self.contract.coverage is Coverage.NEWER:
            kind = "a development version" if version.is_devrelease else f"newer than {newest}"
            yield (
                f"{pack.engine} {version} is {kind}: what {pack.path} knows of "
                f"{self.contract.effective} stands in where the source does not show otherwise"
            )
        elif self.contract.coverage is Coverage.OLDER:
            yield (
                f"{pack.engine} {version} is older than {pack.path} knows: what it knows of "
                f"{oldest} stands in, and what classes promise is read from source only"
            )


def find_engine(
    index: Index,
    pack: Pack,
    spec: EngineSpec | None,
    engine_path: Path | None,
    packs: Iterable[Pack] = (),
) -> Engine | None:
    """The engine of `pack` for the tree of `index`; None where the tree has nothing to do with it.

    Looks in the tree, then at `engine_path`, then at the installed distribution, then at what the
    project itself asks for. packs: all there are; what lies at `engine_path` may be another engine
    of a tree that has to do with several. Raises UserError where it is none of the tree's.
    """
    named = spec.version if spec is not None and spec.name == pack.engine else None
    said = f"named {spec.where}" if spec is not None else ""
    if index.holds(pack):
        found = release_in(index.root.directory, pack, index.modules[pack.package])
        version = named or found
        how = said if named else "the checked tree"
        return Engine(pack.at(version or pack.known[-1]), True, None, how, version is not None)
    if not index.imports(pack):
        return None
    directory = package_parent(engine_path, pack) if engine_path is not None else None
    if engine_path is not None and directory is None:
        others = (other for other in packs if index.imports(other))
        if not any(package_parent(engine_path, other) for other in others):
            raise UserError(
                f"--engine-path {engine_path}: no package `{pack.package}` there; "
                f"give the folder that contains {pack.package}/"
            )
    if directory is not None:
        version = named or release_in(directory, pack, f"{pack.package}/__init__.py")
        how = f"--engine-path {engine_path}"
        contract = pack.at(version or pack.known[-1])
        return Engine(contract, False, directory, how, version is not None)
    installed = _installed(pack)
    if named is None and installed is not None:
        version, directory = installed
        return Engine(pack.at(version), False, directory, "the installed distribution")
    if named is not None:
        same = installed is not None and installed[0] == named
        directory = installed[1] if installed is not None and same else None
        return Engine(pack.at(named), False, directory, said)
    wanted = _wanted(index.root.directory, pack)
    if wanted is not None:
        return Engine(pack.at(wanted), False, None, "the project's requirements")
    return Engine(pack.at(pack.known[-1]), False, None, "the newest known", stated=False)


def package_parent(directory: Path, pack: Pack) -> Path | None:
    """The directory that holds the pack's package: `directory`, its `src`, or its parent."""
    for candidate in (directory, directory / "src", directory.parent):
        if disk.is_file(candidate / pack.package / "__init__.py"):
            return Path(disk.realpath(candidate))
    return None


def release_in(directory: Path, pack: Pack, package_file: str) -> Version | None:
    """The release of an engine's source: dist-info beside the package, or its `_version.py`."""
    package = (directory / package_file).parent
    info = _dist_info(package, pack)
    if info is not None:
        return _version(info.name.removesuffix(".dist-info").partition("-")[2])
    for name in ("_version.py", "version.py", "__init__.py"):
        match = _VERSION.search(_text(package / name))
        if match:
            return _version(match.group(1))
    return None


def _dist_info(package: Path, pack: Pack) -> Path | None:
    """The metadata of the distribution that `package` comes from, where it lies beside it.

    Some builds have names of their own (`engine-cpu`); the files that they list tell.
    """
    infos = [package.parent / name for name in disk.glob(package.parent, "*.dist-info")]
    for info in infos:
        if canonicalize_name(info.name.partition("-")[0]) == canonicalize_name(pack.distribution):
            return info
    owned = f"{pack.package}/__init__.py,"
    return next((info for info in infos if owned in _text(info / "RECORD")), None)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _installed(pack: Pack) -> tuple[Version, Path] | None:
    """Release and folder of the installed engine, located without importing it."""
    try:
        distribution = metadata.distribution(pack.distribution)
        version = _version(distribution.version or "")
    except (metadata.PackageNotFoundError, KeyError, OSError, ValueError):
        return None
    directory = package_parent(Path(str(distribution.locate_file(""))), pack)
    if version is None or directory is None:
        return None
    return version, directory


def _wanted(directory: Path, pack: Pack) -> Version | None:
    """The release that the project's own requirements ask for: the newest known one they allow.

    Where they allow none that the pack knows, the newest they name that they allow, if any.
    """
    for requirement in _requirements(directory):
        if canonicalize_name(requirement.name) != canonicalize_name(pack.distribution):
            continue
        allowed = [v for v in pack.known if requirement.specifier.contains(v, prereleases=True)]
        if allowed and requirement.specifier:
            return allowed[-1]
        bounds = [_version(s.version.rstrip(".*")) for s in requirement.specifier]
        named = [bound for bound in bounds if bound is not None]
        if named:
            return max(
                (v for v in named if requirement.specifier.contains(v, prereleases=True)),
                default=max(named),
            )
    return None


def _requirements(directory: Path) -> Iterator[Requirement]:
    for text in (*_from_pyproject(directory), *_from_metadata(directory), *_from_files(directory)):
        with suppress(InvalidRequirement):  # what pip would refuse tells us nothing
            yield Requirement(text)


def _from_pyproject(directory: Path) -> Iterator[str]:
    from dcplint.toml import load_toml

    try:
        document = load_toml(_text(directory / "pyproject.toml"))
    except ValueError:
        return  # the project's own tools will say so
    project = _table(document, "project")
    groups = [project.get("dependencies")]
    groups += _table(project, "optional-dependencies").values()
    groups += _table(document, "dependency-groups").values()
    for group in groups:
        for entry in group if isinstance(group, list) else ():
            if isinstance(entry, str):
                yield entry


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key)
    return table if isinstance(table, dict) else {}


def _from_metadata(directory: Path) -> Iterator[str]:
    label = "Requires-Dist:"
    for info in disk.glob(directory, "*.dist-info"):
        for line in _text(directory / info / "METADATA").splitlines():
            if line.startswith(label):
                yield line.removeprefix(label)


def _from_files(directory: Path) -> Iterator[str]:
    for folder, pattern in (
        (directory, "requirements*.txt"),
        (directory / "requirements", "*.txt"),
    ):
        for name in disk.glob(folder, pattern):
            for line in _text(folder / name).splitlines():
                text = line.partition(" #")[0].partition(" --")[0].strip()
                if text and text[0] not in "-#":
                    yield text


def _text(path: Path) -> str:
    """The text of a file; empty where there is none."""
    try:
        return disk.read(path).decode("utf-8-sig", errors="replace")
    except OSError:
        return ""
