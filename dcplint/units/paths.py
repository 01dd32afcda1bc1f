"""What a dotted name holds at a place: what it was given on the ways there, all or in part.

Control is followed backwards as far as the definitions that can be in force, past what is stored
into a part. Where the function starts, a parameter is what is passed, and an attribute what
instances of its class are given.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.functions import callee_name
from dcplint.flow.graph import Node, Role
from dcplint.flow.scenario import Scenario
from dcplint.flow.values import unpacked
from dcplint.units.attributes import Attributes
from dcplint.units.backwards import Backwards
from dcplint.units.effort import Effort
from dcplint.units.frames import Evaluate, Frame
from dcplint.units.lattice import Abstract, Counts, Mark, Several, Space, Unit, Value, item, joined
from dcplint.units.operations import stored_into
from dcplint.units.parameters import Parameters
from dcplint.units.restated import Restated


class _Untouched:
    """A node leaves a path alone."""


_UNTOUCHED = _Untouched()


@dataclass
class Paths:
    """Looks dotted names up."""

    scenario: Scenario
    effort: Effort
    backwards: Backwards
    restated: Restated
    parameters: Parameters
    attributes: Attributes
    evaluate: Evaluate
    _loads: dict[str, ast.Attribute] = field(default_factory=dict)

    def before(self, frame: Frame, at: Node, path: str) -> Abstract:
        """What a dotted name holds before `at`: its definitions, and what was stored into it."""
        whole: list[Abstract] = []
        parts: list[Abstract] = []
        seen: set[Node] = set()
        touching = frame.function.mentions.get(path.partition(".")[0], ())
        is_unset = path in frame.function.local_names - {*frame.function.parameters}
        queue = list(self.backwards.before(frame.function, at))
        reachable = self.scenario.reachable(frame.function)
        while queue:
            place = queue.pop()
            if place in seen or place not in reachable:
                continue
            seen.add(place)
            if not self.effort.step():
                return None
            if place.role is Role.ENTRY:
                if not is_unset:  # whoever comes this way has no value to go on with
                    whole.append(self._at_entry(frame, path))
                continue
            defined: Abstract | _Untouched = _UNTOUCHED
            if place.statement in touching:
                defined = self._defined(frame, place, path, parts)
            if isinstance(defined, _Untouched):
                queue += self.backwards.before(frame.function, place)
            else:
                whole.append(defined)
        known = joined(whole) if whole else None
        if parts and not isinstance(known, Value):
            # A buffer is what is written into it, wherever the buffer lies.
            held = joined(parts)
            return replace(held, on_device=False) if isinstance(held, Value) else held
        return joined((known, *parts)) if parts else known

    def _at_entry(self, frame: Frame, path: str) -> Abstract:
        """What a path holds when a function starts."""
        if "." in path:
            return self.attributes.of(frame, self._loaded(path))
        return self.parameters.of(frame, path) if path in frame.function.parameters else None

    def _loaded(self, path: str) -> ast.Attribute:
        """A path of several names as an expression, the same object each time."""
        if path not in self._loads:
            node = ast.parse(path, mode="eval").body
            assert isinstance(node, ast.Attribute)
            self._loads[path] = node
        return self._loads[path]

    # Nodes

    def _defined(
        self, frame: Frame, place: Node, path: str, parts: list[Abstract]
    ) -> Abstract | _Untouched:
        """What a node gives `path`; `_UNTOUCHED` where it leaves it alone, or most of it.

        parts: takes in what the node stores into a part of it.
        """
        statement = place.statement
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            if place.role is not Role.BIND:
                return _UNTOUCHED
            for inner, element in unpacked(statement.target, ()):
                if dotted_name(inner) == path:
                    return self._element(frame, place, statement.iter, element)
            return _UNTOUCHED
        if place.role is not Role.PLAIN or not isinstance(statement, ast.stmt):
            return _UNTOUCHED
        if isinstance(statement, ast.AugAssign):
            return self._augmented(frame, place, statement, path, parts)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            found = self._assigned(frame, place, statement, path, parts)
            if not isinstance(found, _Untouched):
                return found
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            found = self._filled(frame, place, statement.value, path, parts)
            if not isinstance(found, _Untouched):
                return found
        root = path.partition(".")[0]
        for node in frame.function.own_nodes[statement]:
            if isinstance(node, ast.NamedExpr) and node.target.id == root:
                return self.evaluate(frame, place, node.value) if root == path else None
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            targets = [i.optional_vars for i in statement.items if i.optional_vars is not None]
            if any(dotted_name(t) == root for t in targets):
                return None
        return _UNTOUCHED

    def _element(
        self, frame: Frame, place: Node, iterable: ast.expr, element: tuple[str | int, ...]
    ) -> Abstract:
        """What a loop gives its target: an element, by `zip` and `enumerate` too."""
        if isinstance(iterable, ast.Call) and element and isinstance(element[0], int):
            name = callee_name(iterable)
            if name == "enumerate" and iterable.args:
                if element[0] == 1:
                    return self._element(frame, place, iterable.args[0], element[1:])
                return Value(Unit(Space.GLOBAL, Counts.OFFSETS))
            if name == "zip" and element[0] < len(iterable.args):
                return self._element(frame, place, iterable.args[element[0]], element[1:])
        if element:
            return None
        found = self.evaluate(frame, place, iterable)
        return joined(found.items) if isinstance(found, Several) else found

    def _assigned(
        self,
        frame: Frame,
        place: Node,
        statement: ast.Assign | ast.AnnAssign,
        path: str,
        parts: list[Abstract],
    ) -> Abstract | _Untouched:
        value = statement.value
        if value is None:
            return _UNTOUCHED
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets
        root = path.partition(".")[0]
        for target in targets:
            for inner, element in unpacked(target, ()):
                dotted = dotted_name(inner)
                if dotted == path:
                    found = self.evaluate(frame, place, value)
                    for index in element:
                        found = item(found, index)
                    return _seen(found, frame, statement, f"{path} = {shorten(value)}")
                if dotted == root:
                    return self._of_object(frame, place, path, None if element else value)
                if isinstance(inner, ast.Subscript) and dotted_name(inner.value) == path:
                    found = self.evaluate(frame, place, value)
                    parts.append(_seen(found, frame, statement, shorten(statement)))
        return _UNTOUCHED

    def _of_object(self, frame: Frame, place: Node, path: str, value: ast.expr | None) -> Abstract:
        """An attribute of a variable that was given `value`: an alias is followed."""
        dotted = dotted_name(value) if value is not None else None
        if dotted is not None:
            rest = path.partition(".")[2]
            found = self.before(frame, place, f"{dotted}.{rest}")
            if found is not None:
                return found
        return self.attributes.of(frame, self._loaded(path))

    def _augmented(
        self,
        frame: Frame,
        place: Node,
        statement: ast.AugAssign,
        path: str,
        parts: list[Abstract],
    ) -> Abstract | _Untouched:
        target: ast.expr = statement.target
        whole = not isinstance(target, ast.Subscript)
        while isinstance(target, ast.Subscript):
            target = target.value
        if dotted_name(target) != path:
            return _UNTOUCHED
        changed = self.restated.sum(statement, target, statement.op, statement.value)
        found = self.evaluate(frame, place, changed)
        if whole:
            return found
        parts.append(found)
        return _UNTOUCHED

    def _filled(
        self, frame: Frame, place: Node, call: ast.Call, path: str, parts: list[Abstract]
    ) -> Abstract | _Untouched:
        """What a call that stands alone gives `path`: all of it, or a part."""
        for target, value in self.restated.writes(frame.function, call):
            if stored_into(target) == path:
                found = self.evaluate(frame, place, value)
                if not isinstance(target, ast.Subscript):
                    return found
                parts.append(found)
        return _UNTOUCHED


def _seen(found: Abstract, frame: Frame, statement: ast.stmt, text: str) -> Abstract:
    """A value seen at a statement too, said by `text`."""
    return found.at(Mark(frame.function, statement, text)) if isinstance(found, Value) else found
