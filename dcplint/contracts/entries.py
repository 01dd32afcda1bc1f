"""The entries of a pack's mappings, taken by name and checked, with errors that name the line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from packaging.specifiers import SpecifierSet

from dcplint.contracts.document import Node, PackError
from dcplint.contracts.model import Releases, Source

T = TypeVar("T")

_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_VERSION = r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?"
_SPECIFIER = f"(==|!=|<=|>=|<|>) ?{_VERSION}"
PATTERNS = {
    # what messages call it: its pattern and an example. The schema has the same patterns.
    "an engine name": (r"[a-z][a-z0-9-]*", "my-engine"),
    "a distribution name": (r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "my-engine"),
    "a name": (_IDENTIFIER, "supports_dcp"),
    "an argument": (rf"{_IDENTIFIER}(=-?[A-Za-z0-9_.]+)?", "fa_version=4"),
    "a dotted name": (rf"{_IDENTIFIER}(\.{_IDENTIFIER})*", "engine.attention.Backend"),
    "a release": (_VERSION, "0.30.0"),
    "a range of releases": (f"{_SPECIFIER}(, ?{_SPECIFIER})*", ">=0.26,<0.30"),
    "a source": (
        r"[^\s,:@#]+(:[0-9]+)?@[^\s,:@#]+|[^\s,:@#]+#[0-9]+",
        "engine/attention.py:12@0.30.0 or repo#123",
    ),
    "a name to rewrite": (rf"{_IDENTIFIER}(\.{_IDENTIFIER})*\.?", "vllm."),
    "a sentence": (r"[\s\S]*\S[\s\S]*", "what it promises"),
}
_COMPILED = {what: re.compile(pattern) for what, (pattern, _) in PATTERNS.items()}


@dataclass(slots=True)
class Reader:
    """Reads the entries of one file, which messages call `shown`."""

    shown: str

    def fail(self, line: int, problem: str) -> NoReturn:
        """Raise PackError for that line."""
        raise PackError(f"{self.shown}:{line}: {problem}")

    def text(self, node: Node, where: str, what: str) -> str:
        """A text that is `what` (a key of `PATTERNS`)."""
        if node.kind != "text":
            quote = "; put it in quotes" if node.raw and node.kind != "nothing" else ""
            self.fail(node.line, f"{where} must be {what}, got {_with_kind(node)}{quote}")
        if not _COMPILED[what].fullmatch(node.raw):
            example = PATTERNS[what][1]
            self.fail(node.line, f"{where} must be {what} such as {example}, got {node}")
        return node.raw

    def fields(self, node: Node, where: str, keys: str) -> Fields:
        """The entries of the mapping `node`, which may have no other than the given keys."""
        allowed = keys.split()
        if node.kind != "mapping":
            wanted = ", ".join(allowed[:4])
            self.fail(node.line, f"{where} must be a mapping with {wanted}, got {node}")
        for key in node.entries:
            if key not in allowed:
                place = f" in {where}" if where else ""
                close = difflib.get_close_matches(key, allowed, 1)
                hint = (
                    f"did you mean '{close[0]}'?" if close else f"it may have {', '.join(allowed)}"
                )
                self.fail(node.key_lines[key], f"unknown key '{key}'{place}; {hint}")
        return Fields(self, node, where)

    def pairs(self, top: Fields, key: str, left: str, right: str) -> Iterator[tuple[str, str]]:
        """The mapping under `key`: from what is `left` to what is `right`."""
        node = top.optional(key)
        if node is None:
            return
        if node.kind != "mapping":
            top.fail(key, f"must be a mapping from {left} to {right}, got {node}")
        for name, value in node.entries.items():
            line = node.key_lines[name]
            if not _COMPILED[left].fullmatch(name):
                example = PATTERNS[left][1]
                self.fail(line, f"{key} must map {left} such as {example}, got '{name}'")
            yield name, self.text(value, f"{key}[{name}]", right)


@dataclass(slots=True)
class Fields:
    """The entries of one mapping, taken by name and checked as they are taken."""

    reader: Reader
    node: Node
    where: str

    @property
    def line(self) -> int:
        """Where the mapping begins."""
        return self.node.line

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise PackError for what is wrong with the value of `key`."""
        node = self.node.entries.get(key, self.node)
        self.reader.fail(node.line, f"{self.at(key)} {problem}")

    def at(self, key: str) -> str:
        """How messages call the value of `key`."""
        return f"{self.where}.{key}" if self.where else key

    def optional(self, key: str) -> Node | None:
        """The value of `key`, if there is one."""
        return self.node.entries.get(key)

    def required(self, key: str) -> Node:
        """The value of `key`, which must be there."""
        node = self.node.entries.get(key)
        if node is None:
            place = self.where or "the pack"
            self.reader.fail(self.node.line, f"{place} lacks '{key}'; add it (see docs/packs.md)")
        return node

    def text(self, key: str, what: str) -> str:
        """A required text that is `what`, as for all below a key of `PATTERNS`."""
        return self.reader.text(self.required(key), self.at(key), what)

    def text_or(self, key: str, what: str, default: T) -> str | T:
        """The same, or `default` where the key is absent."""
        node = self.optional(key)
        return default if node is None else self.reader.text(node, self.at(key), what)

    def texts(self, key: str, what: str) -> tuple[str, ...]:
        """A list of such texts; empty where the key is absent."""
        return tuple(self.items(key, lambda node, at: self.reader.text(node, at, what)))

    def flag(self, key: str) -> bool:
        """A required true or false."""
        node = self.required(key)
        if node.kind != "flag":
            self.fail(key, f"must be true or false, got {node}")
        return node.truth

    def flag_or(self, key: str) -> bool:
        """The same, or False where the key is absent."""
        return self.optional(key) is not None and self.flag(key)

    def count(self, key: str) -> int:
        """A required whole number from 0 on."""
        node = self.required(key)
        if node.kind != "a number" or not node.raw.isdigit():
            self.fail(key, f"must be a whole number from 0 on, got {node}")
        return int(node.raw)

    def count_or(self, key: str) -> int | None:
        """The same, or None where the key is absent."""
        return None if self.optional(key) is None else self.count(key)

    def choice(self, key: str, options: tuple[str, ...], default: str | None = None) -> str:
        """One of the options; required unless there is a default."""
        node = self.optional(key) if default else self.required(key)
        if node is None:
            assert default is not None
            return default
        if node.kind != "text" or node.raw not in options:
            close = difflib.get_close_matches(node.raw, options, 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            self.fail(key, f"must be one of {', '.join(options)}, got {node}{hint}")
        return node.raw

    def choices(self, key: str, options: tuple[str, ...]) -> tuple[str, ...]:
        """A list of some of the options; empty where the key is absent."""
        found = self.texts(key, "a name")
        for text in found:
            if text not in options:
                self.fail(key, f"may have {', '.join(options)}, got '{text}'")
        return found

    def items(self, key: str, decode: Callable[[Node, str], T]) -> Iterator[T]:
        """Each item of the list under `key`, decoded; nothing where the key is absent."""
        node = self.optional(key)
        if node is None:
            return
        if node.kind != "list":
            self.fail(key, f"must be a list, got {node}")
        for index, item in enumerate(node.items):
            yield decode(item, f"{self.at(key)}[{index}]")

    def releases(self) -> Releases:
        """The value of `releases`: one range or a list of them; absent means every release."""
        node = self.optional("releases")
        if node is None:
            return Releases()
        nodes = node.items if node.kind == "list" else [node]
        if not nodes:
            self.fail("releases", "must name at least one range; leave it out for every release")
        texts = (self.reader.text(n, self.at("releases"), "a range of releases") for n in nodes)
        return Releases(tuple(map(SpecifierSet, texts)))

    def source(self) -> Source:
        """The value of `source`: one place or a list of them, located at this mapping."""
        node = self.required("source")
        nodes = node.items if node.kind == "list" else [node]
        if not nodes:
            self.fail("source", "must name at least one place, such as repo#123")
        texts = (self.reader.text(n, self.at("source"), "a source") for n in nodes)
        return Source(", ".join(texts), self.reader.shown, self.node.line)


def _with_kind(node: Node) -> str:
    return f"{node} ({node.kind})" if node.kind in ("a number", "a date") else str(node)
