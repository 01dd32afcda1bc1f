"""A pack's YAML as plain nodes that remember their line.

Only what a pack needs: mappings with text keys, lists and scalars. Anchors, aliases and tags are
refused, so nothing in a file can stand for more than is written in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from dcplint import disk
from dcplint.errors import UserError

MAX_DEPTH = 16

_KINDS = {
    "tag:yaml.org,2002:str": "text",
    "tag:yaml.org,2002:bool": "flag",
    "tag:yaml.org,2002:null": "nothing",
    "tag:yaml.org,2002:int": "a number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:timestamp": "a date",
}
_TRUE = ("true", "yes", "on")


class PackError(UserError):
    """A pack that cannot be used; the message is one sentence with its place and the remedy."""


@dataclass(slots=True)
class Node:
    """One YAML value.

    kind: `text`, `flag`, `nothing`, `list`, `mapping`, or what else a scalar is, in words.
    raw: a scalar as written. key_lines: the lines of a mapping's keys, which its values may not
    share.
    """

    kind: str
    line: int
    raw: str = ""
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Node] = field(default_factory=dict)
    key_lines: dict[str, int] = field(default_factory=dict)

    @property
    def truth(self) -> bool:
        """The value of a `flag`."""
        return self.raw.lower() in _TRUE

    def __str__(self) -> str:
        if self.kind in ("list", "mapping"):
            return f"a {self.kind}"
        if self.kind == "nothing":
            return "nothing"
        if self.kind == "text":
            return repr(self.raw if len(self.raw) <= 60 else self.raw[:57] + "...")
        return self.raw


def read_document(path: Path, shown: str) -> Node:
    """The root mapping of the pack at `path`, which messages call `shown`."""
    try:
        data = disk.read(path)
    except FileNotFoundError:
        raise PackError(f"{shown}: no such pack file; check the path") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise PackError(f"{shown}: the pack cannot be read ({why}); give a readable file") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PackError(
            f"{shown}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; save the pack as UTF-8"
        ) from None
    root = _Builder(shown).build(text)
    if root is None:
        raise PackError(f"{shown}:1: the pack is empty; start with 'engine: <name>'")
    if root.kind != "mapping":
        raise PackError(
            f"{shown}:{root.line}: a pack must be a mapping that starts with 'engine: <name>', "
            f"got {root}"
        )
    return root


class _Builder:
    """Builds the tree from parser events.

    Events rather than composed nodes, since a composed tree no longer shows its aliases and a
    deeply nested file overflows the composer's stack.
    """

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.stack: list[Node] = []
        self.keys: list[tuple[str, int] | None] = []
        self.root: Node | None = None

    def build(self, text: str) -> Node | None:
        import yaml

        resolve: Any = yaml.resolver.Resolver().resolve
        documents = 0
        for event in self._events(text):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                self._fail(line, f"alias '*{event.anchor}' is not allowed; write the value out")
            if getattr(event, "anchor", None):
                self._fail(line, f"anchor '&{event.anchor}' is not allowed; write the value out")
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._fail(line, "a pack is one YAML document; remove the second '---'")
            elif isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
                self.keys.pop()
            elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
                if event.tag:
                    self._fail(line, f"tag '{event.tag}' is not allowed; write a plain value")
                if isinstance(event, yaml.ScalarEvent):
                    tag = resolve(yaml.ScalarNode, event.value, event.implicit)
                    self._add(Node(_KINDS.get(tag, "a special value"), line, event.value))
                else:
                    kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
                    self._open(Node(kind, line))
        return self.root

    def _events(self, text: str) -> Iterator[Any]:
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            yield from yaml.parse(text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self._fail(line, f"this is not valid YAML ({error.problem}); fix the syntax there")
        except yaml.reader.ReaderError as error:
            # libyaml counts bytes, and the text it refused may be one that UTF-8 cannot hold.
            before = text.encode("utf-8", "surrogatepass")[: error.position]
            self._fail(
                before.count(b"\n") + 1,
                f"this is not valid YAML ({error.reason}); remove the character",
            )

    def _open(self, node: Node) -> None:
        self._add(node)
        if len(self.stack) >= MAX_DEPTH:
            self._fail(node.line, f"nested deeper than {MAX_DEPTH} levels; no pack needs that")
        self.stack.append(node)
        self.keys.append(None)

    def _add(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        if parent.kind == "list":
            parent.items.append(node)
            return
        key = self.keys[-1]
        if key is None:
            if node.kind in ("list", "mapping"):
                self._fail(node.line, f"a key must be text, got {node}; write 'key: value'")
            if node.raw in parent.entries:
                first = parent.key_lines[node.raw]
                self._fail(
                    node.line, f"key {node.raw!r} is already on line {first}; remove one of them"
                )
            self.keys[-1] = (node.raw, node.line)
            return
        name, line = key
        parent.entries[name] = node
        parent.key_lines[name] = line
        self.keys[-1] = None

    def _fail(self, line: int, problem: str) -> NoReturn:
        raise PackError(f"{self.shown}:{line}: {problem}")
