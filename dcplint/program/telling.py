"""What a call tells a gate: whether it passes the argument that makes the gate ask of DCP.

Mappings are read within the function: displays, unions, comprehensions, `_asdict()`, and what is
done to a variable that holds one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.source.tree import Definition, walk

_DEPTH = 4  # mappings in terms of mappings
_READING = frozenset({"copy", "get", "items", "keys", "values"})
_TESTED = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.Match)

_Item = tuple["ast.expr | None", ast.expr]
"""A key and its value; without a key, a mapping whose items come in here."""


def tells(node: Definition, call: ast.Call, argument: str | None) -> bool:
    """Whether a call made in `node` passes the argument, or may: by position, or with others.

    What is written to be False is not told, unless a test decides whether the call is made.
    """
    if call.args or argument is None:
        return True
    items = _given(call)
    mappings = _Mappings(node, argument)
    said = mappings.last(items, _DEPTH)
    if said is False:
        return call in mappings.tested
    return said is True


@dataclass
class _Mappings:
    """The mappings of one function, and what they hold under a key.

    True: something, maybe. False: nothing but False or None. None: they lack the key.
    """

    node: Definition
    key: str
    _held: dict[str, bool | None] = field(default_factory=dict)

    @cached_property
    def tested(self) -> frozenset[ast.AST]:
        """What runs only where a test lets it, or once for each of something."""
        outer = (inner for inner in walk(self.node) if isinstance(inner, _TESTED))
        return frozenset(inner for around in outer for inner in walk(around))

    def last(self, items: Iterable[_Item], depth: int) -> bool | None:
        """What the last of some items says that says anything."""
        for key, value in reversed(list(items)):
            said: bool | None = None
            if key is None:
                said = self._says(value, depth)
            elif not isinstance(key, ast.Constant):
                said = True
            elif key.value == self.key:
                said = not (isinstance(value, ast.Constant) and not value.value)
            if said is not None:
                return said
        return None

    def _says(self, value: ast.expr, depth: int) -> bool | None:
        if depth == 0:
            return True
        if isinstance(value, ast.Dict):
            return self.last(zip(value.keys, value.values, strict=True), depth)
        if isinstance(value, ast.DictComp):
            return None if self._leaves_out(value) else True
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
            return self.last([(None, value.left), (None, value.right)], depth - 1)
        if isinstance(value, ast.Call):
            return self._made(value, depth - 1)
        if isinstance(value, ast.Name):
            return self._variable(value.id, depth - 1)
        return True

    def _leaves_out(self, value: ast.DictComp) -> bool:
        """`{k: v for k, v in … if k != key}`."""
        for test in (test for part in value.generators for test in part.ifs):
            if isinstance(test, ast.Compare) and len(test.ops) == 1:
                if ast.dump(test.left) == ast.dump(value.key):
                    named = {
                        n.value for n in walk(test.comparators[0]) if isinstance(n, ast.Constant)
                    }
                    if isinstance(test.ops[0], (ast.NotEq, ast.NotIn)) and self.key in named:
                        return True
        return False

    def _made(self, call: ast.Call, depth: int) -> bool | None:
        """What a call returns: `dict(…)`, `mapping.copy()`, the fields of a record."""
        name = (dotted_name(call.func) or "").rpartition(".")[2]
        if dotted_name(call.func) == "dict":
            return self.last(_given(call), depth)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name == "copy" and owner is not None and not call.args:
            return self._says(owner, depth)
        record = call.args[0] if name == "asdict" and call.args else owner
        if name in ("asdict", "_asdict") and isinstance(record, ast.Name):
            values = list(self._assigned(record.id))
            record = values[0] if len(values) == 1 else record
        if name in ("asdict", "_asdict") and isinstance(record, ast.Call):
            if (dotted_name(record.func) or "").rpartition(".")[2] in ("replace", "_replace"):
                given = self.last([i for i in _given(record) if i[0] is not None], depth)
                return True if given is None else given
        return True

    def _assigned(self, name: str) -> Iterator[ast.expr]:
        for node in walk(self.node):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                one = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                if any(_is_named(target, name) for target in one):
                    yield node.value

    def _variable(self, name: str, depth: int) -> bool | None:
        """What a variable holds once the statements of its function have run, in their order.

        What takes the key away counts only where it surely runs.
        """
        if name in self._held:
            return self._held[name]  # `m = {**m, …}`: what it holds by then
        self._held[name] = True
        for node in self._in_order:
            for change in self._changes(node, name, depth):
                if change is True or node not in self.tested:
                    self._held[name] = change
        return self._held.pop(name)

    @cached_property
    def _in_order(self) -> list[ast.expr | ast.stmt]:
        nodes = [n for n in walk(self.node) if isinstance(n, (ast.Call, ast.stmt))]
        return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))

    def _changes(self, node: ast.AST, name: str, depth: int) -> Iterator[bool | None]:
        """What a node makes of what the variable holds, where it makes anything of it."""
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
                if _is_named(target, name):
                    yield self._says(node.value, depth)
                elif isinstance(target, ast.Subscript) and _is_named(target.value, name):
                    yield from self._added([(target.slice, node.value)], depth)
        elif isinstance(node, ast.AugAssign) and _is_named(node.target, name):
            yield from self._added([(None, node.value)], depth)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _is_named(target.value, name):
                    yield from self._taken([target.slice])
        elif isinstance(node, ast.Call):
            yield from self._called(node, name, depth)

    def _called(self, call: ast.Call, name: str, depth: int) -> Iterator[bool | None]:
        callee = call.func
        if isinstance(callee, ast.Attribute) and _is_named(callee.value, name):
            if callee.attr == "pop":
                yield from self._taken(call.args[:1])
            elif callee.attr == "update":
                yield from self._added(_given(call), depth)
            elif callee.attr not in _READING:
                yield True
        elif dotted_name(callee) != "dict" and any(_is_named(given, name) for given in call.args):
            yield True  # whoever is handed it may add to it

    def _added(self, items: Iterable[_Item], depth: int) -> Iterator[bool]:
        said = self.last(items, depth)
        if said is not None:
            yield said

    def _taken(self, keys: Iterable[ast.expr]) -> Iterator[None]:
        yield from (None for key in keys if isinstance(key, ast.Constant) and key.value == self.key)


def _given(call: ast.Call) -> list[_Item]:
    """What `dict(…)` or `mapping.update(…)` is given."""
    named: list[_Item] = [(ast.Constant(k.arg) if k.arg else None, k.value) for k in call.keywords]
    return [*((None, given) for given in call.args), *named]


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
