"""Configuration: `dcplint.toml`, or `[tool.dcplint]` in `pyproject.toml`.

One file is in force for a run: the nearest at or above what all the checked paths have in common.
Paths in it are relative to its folder, and so are patterns.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from dcplint import disk
from dcplint.contracts.spec import EngineSpec, parse_engine
from dcplint.errors import UserError
from dcplint.findings.catalogue import Catalogue, UnknownRule
from dcplint.findings.model import Severity
from dcplint.findings.policy import Policy, selected
from dcplint.report.formats import FORMATS
from dcplint.source.ignore import is_pattern
from dcplint.toml import load_toml

T = TypeVar("T")

_SEVERITIES = {severity.value: severity for severity in Severity}


def _one_of(words: Iterable[str]) -> str:
    *most, last = (f"`{word}`" for word in words)
    return f"{', '.join(most)} or {last}"


@dataclass(frozen=True, slots=True)
class Key:
    """What the page on configuration says of a key, in Markdown. Its default may be none."""

    meaning: str
    type: str
    default: str = "none"


Rules = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HarnessConfig:
    """The table `harness`. drivers: `module:Class` or `file.py:Class`, files absolute."""

    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration file. Every field but `path` is a key, spelt with hyphens."""

    path: Path | None = None
    select: Annotated[
        Rules | None,
        Key("the rules that are on", "list of rules", "those that are on by default"),
    ] = None
    extend_select: Annotated[Rules, Key("further rules", "list of rules")] = ()
    ignore: Annotated[Rules, Key("rules that are off", "list of rules")] = ()
    exclude: Annotated[
        tuple[str, ...],
        Key(
            "what is left out, in the syntax of `.gitignore` and on top of it; a path that is "
            "named on the command line is never left out",
            "list of patterns",
        ),
    ] = ()
    per_file_ignores: Annotated[
        tuple[tuple[str, Rules], ...],
        Key("rules that are off in some files", "pattern → list of rules"),
    ] = ()
    severity: Annotated[
        tuple[tuple[str, Severity], ...],
        Key("replaces the severity of a rule", f"rule → {_one_of(_SEVERITIES)}", "the rule's own"),
    ] = ()
    min_severity: Annotated[
        Severity, Key("findings that are milder are left out", _one_of(_SEVERITIES), "`note`")
    ] = Severity.NOTE
    engine: Annotated[
        EngineSpec | None,
        Key("the engine release to check against", "`name==release` or `auto`", "`auto`"),
    ] = None
    engine_path: Annotated[Path | None, Key("where the engine's source lies", "folder")] = None
    packs: Annotated[
        tuple[Path, ...], Key("[contract packs](packs.md) of your own", "list of files")
    ] = ()
    baseline: Annotated[
        Path | None, Key("findings that are accepted, see [below](#a-baseline)", "file")
    ] = None
    output_format: Annotated[
        str | None,
        Key("how findings are shown", _one_of(FORMATS), "`text`; `github` in GitHub Actions"),
    ] = None
    cache_dir: Annotated[
        Path | None,
        Key(
            "where [runs are kept](performance.md#the-cache)",
            "folder",
            "`$DCPLINT_CACHE_DIR`, else a folder in the user's cache",
        ),
    ] = None
    harness: Annotated[
        HarnessConfig,
        Key(
            "drivers that make [another engine's backends]"
            "(harness.md#making-another-engines-backend-runnable) runnable",
            "a table: `drivers`, a list of `module:Class` or `file.py:Class`",
        ),
    ] = HarnessConfig()


_HARNESS_KEYS = tuple(f.name for f in fields(HarnessConfig))
_KEYS = tuple(f.name.replace("_", "-") for f in fields(Config) if f.name != "path")


def find_config(paths: Iterable[Path], catalogue: Catalogue) -> Config:
    """The configuration in force for these paths. Raises UserError for whatever is wrong in it."""
    absolute = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - keeps symlinks
    start = Path(os.path.commonpath(absolute))
    for folder in (start, *start.parents):
        for name in ("dcplint.toml", "pyproject.toml"):
            config = _load(folder / name, catalogue)
            if config:
                return config
    return Config()


def policy(
    config: Config,
    catalogue: Catalogue,
    *,
    select: Sequence[str] | None = None,
    extend_select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    min_severity: Severity | None = None,
) -> Policy:
    """The configuration's decisions with those of the command line on top.

    `select` replaces the configuration's choice as a whole, `extend_select` and `ignore` add to
    it. Raises UnknownRule for words of the command line; the configuration's were checked.
    """
    if select is None:
        select = config.select
        ignore = [*(w for w in config.ignore if w not in extend_select), *ignore]
        extend_select = [*config.extend_select, *extend_select]
    severities: dict[str, Severity] = {}
    # The longer selector wins, and comes last.
    for word, severity in sorted(config.severity, key=lambda item: len(item[0])):
        severities |= dict.fromkeys(catalogue.family(word), severity)
    return Policy(
        codes=selected(catalogue, select=select, extend_select=extend_select, ignore=ignore),
        per_file_ignores=tuple(
            (pattern, frozenset().union(*map(catalogue.family, words)))
            for pattern, words in config.per_file_ignores
        ),
        severities=severities,
        min_severity=min_severity or config.min_severity,
    )


def _load(path: Path, catalogue: Catalogue) -> Config | None:
    """The configuration in that file, or None where there is none."""
    try:
        raw = disk.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{_shown(path)}: cannot be read: {error.strerror}") from error
    is_own = path.name == "dcplint.toml"
    # Without its zeros a file in UTF-16 shows its words too.
    if not is_own and b"dcplint" not in raw.replace(b"\0", b""):
        return None  # not worth parsing, and not ours to complain about
    try:
        text = raw.decode("utf-8-sig")
        table: object = load_toml(text)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{_shown(path)}, line {line}: not UTF-8, as TOML has to be; save it in that encoding"
        ) from error
    except ValueError as error:
        raise UserError(f"{_shown(path)}: not valid TOML: {error}") from error
    for key in () if is_own else ("tool", "dcplint"):
        table = table.get(key) if isinstance(table, dict) else table
    if table is None:
        return None
    if not isinstance(table, dict):
        raise UserError(f"{_shown(path)}: `tool.dcplint` must be a table")
    return _Reader(path, text, table, catalogue).config()


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    text: str
    table: dict[str, Any]
    catalogue: Catalogue

    def config(self) -> Config:
        for key in self.table:
            if key == "tool":
                raise self.error(key, "keys stand here without the prefix `tool.dcplint`")
            if key not in _KEYS:
                raise self.error(key, f"unknown key {key!r}{_hint(key, _KEYS)}")
        folder = self.path.parent
        return Config(
            path=self.path,
            select=self.selectors("select"),
            extend_select=self.selectors("extend-select") or (),
            ignore=self.selectors("ignore") or (),
            exclude=self.patterns("exclude"),
            per_file_ignores=self.per_file_ignores(),
            severity=self.severities(),
            min_severity=self.choice("min-severity", _SEVERITIES) or Severity.NOTE,
            engine=self.engine(),
            engine_path=self.path_to("engine-path"),
            packs=tuple(folder / pack for pack in self.strings("packs") or ()),
            baseline=self.path_to("baseline"),
            output_format=self.choice("output-format", {name: name for name in FORMATS}),
            cache_dir=self.path_to("cache-dir"),
            harness=self.harness(),
        )

    def string(self, key: str) -> str | None:
        value = self.table.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.error(key, f"`{key}` must be a string")

    def path_to(self, key: str) -> Path | None:
        value = self.string(key)
        return self.path.parent / value if value else None

    def strings(self, key: str) -> tuple[str, ...] | None:
        return self.list_of_strings(key, self.table[key]) if key in self.table else None

    def list_of_strings(self, key: str, value: object) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise self.error(key, f"`{key}` must be a list of strings")

    def patterns(self, key: str) -> tuple[str, ...]:
        found = self.strings(key) or ()
        self.check_patterns(key, found)
        return found

    def check_patterns(self, key: str, patterns: Iterable[str]) -> None:
        for pattern in patterns:
            if not is_pattern(pattern):
                raise self.error(
                    key, f"in `{key}`: {pattern!r} matches nothing; write it as in a .gitignore"
                )

    def per_file_ignores(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found = self.mapping("per-file-ignores", self.known_rules)
        self.check_patterns("per-file-ignores", (pattern for pattern, _ in found))
        return found

    def selectors(self, key: str) -> tuple[str, ...] | None:
        return self.known_rules(key, self.table[key]) if key in self.table else None

    def known_rules(self, key: str, value: object) -> tuple[str, ...]:
        words = self.list_of_strings(key, value)
        for word in words:
            self.known_rule(key, word)
        return words

    def known_rule(self, key: str, word: str) -> None:
        try:
            self.catalogue.family(word)
        except UnknownRule as unknown:
            raise self.error(key, f"in `{key}`: {unknown}") from unknown

    def mapping(self, key: str, read: Callable[[str, object], T]) -> tuple[tuple[str, T], ...]:
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f"`{key}` must be a table")
        return tuple((inner, read(inner, item)) for inner, item in value.items())

    def severities(self) -> tuple[tuple[str, Severity], ...]:
        found = self.mapping("severity", lambda key, value: self.one_of(key, value, _SEVERITIES))
        for word, _ in found:
            self.known_rule("severity", word)
        return found

    def choice(self, key: str, options: dict[str, T]) -> T | None:
        return self.one_of(key, self.table[key], options) if key in self.table else None

    def one_of(self, key: str, value: object, options: dict[str, T]) -> T:
        if isinstance(value, str) and value in options:
            return options[value]
        hint = _hint(value, options) if isinstance(value, str) else ""
        raise self.error(key, f"`{key}` must be one of {', '.join(options)}, not {value!r}{hint}")

    def harness(self) -> HarnessConfig:
        found = dict(self.mapping("harness", self.list_of_strings))
        for key in found:
            if key not in _HARNESS_KEYS:
                hint = _hint(key, _HARNESS_KEYS)
                raise self.error(key, f"unknown key {key!r} in `harness`{hint}")
        return HarnessConfig(tuple(map(self.driver, found.get("drivers", ()))))

    def driver(self, reference: str) -> str:
        place, _, name = reference.rpartition(":")
        if not place or not name.isidentifier():
            wanted = "`module:Class` or `file.py:Class`"
            raise self.error("drivers", f"in `drivers`: {reference!r} is not {wanted}")
        folder = self.path.parent.absolute()
        return f"{folder / place}:{name}" if place.endswith(".py") else reference

    def engine(self) -> EngineSpec | None:
        try:
            found = parse_engine(self.string("engine") or "auto")
            return replace(found, where=f"in {_shown(self.path)}") if found else None
        except ValueError as error:
            raise self.error("engine", f"`engine`: {error}") from error

    def error(self, key: str, message: str) -> UserError:
        line = _line_of(key, self.text, in_table=self.path.name != "dcplint.toml")
        return UserError(f"{_shown(self.path)}{f', line {line}' if line else ''}: {message}")


def _line_of(key: str, text: str, *, in_table: bool) -> int | None:
    """The line that sets a key, as far as that is plain to see."""
    ours = not in_table
    sets = re.compile(rf"""\s*(?:[\w-]+\s*\.\s*)*(["']?){re.escape(key)}\1\s*[=.]""")
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]*)\]", line)
        if header:
            ours = not in_table or header[1].startswith("tool.dcplint")
            if ours and header[1].rstrip().endswith(f".{key}"):
                return number
        elif ours and sets.match(line):
            return number
    return None


def _hint(word: str, options: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, options, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _shown(path: Path) -> str:
    """The path, relative to the working directory where it lies below it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
