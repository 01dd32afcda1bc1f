"""What a test says when DCP is on, and which statements can then run.

"DCP is on" means that the DCP world size is an unknown number of at least 2. Tests evaluate to
true, false or unknown (three-valued logic), so that a rule can tell a branch that runs under DCP
from one that cannot, however the guard is spelled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from dcplint.contracts.model import Vocabulary
from dcplint.facts.expressions import dotted_name, number

_ON = tuple(range(2, 65))  # the world sizes that stand for "DCP is on" when a test is evaluated
_OFF = (1,)


@dataclass(slots=True)
class Guards:
    """Evaluates tests of one function.

    canonical: what a dotted name in that function stands for. aliases, groups: names that hold
    the DCP world size, or the DCP process group. on: whether DCP is.
    """

    vocabulary: Vocabulary
    canonical: Callable[[str], str] = str
    aliases: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    on: bool = True

    def truth(self, test: ast.expr) -> bool | None:
        """The value of `test` when DCP is on (or off); None where it depends on more than that."""
        return self._truth(test, _ON if self.on else _OFF)

    def is_exclusive(self, test: ast.expr, when: bool) -> bool:
        """Whether `test` has the value `when` with DCP on, and never without."""
        return self._truth(test, _ON) is when and self._truth(test, _OFF) is (not when)

    def needs_dcp(self, test: ast.expr) -> bool:
        """Whether `test` never holds without DCP: `dcp_size > 1 and wanted`."""
        return self._truth(test, _OFF) is False

    def _truth(self, test: ast.expr, sizes: tuple[int, ...]) -> bool | None:
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._truth(test.operand, sizes)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            return self._combined(test, sizes)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compared(test.left, test.ops[0], test.comparators[0], sizes)
        if isinstance(test, ast.NamedExpr):
            if self.is_size(test.value):
                self.aliases.add(test.target.id)
            return self._truth(test.value, sizes)
        if self.is_switch(test):
            return sizes is _ON
        return True if self.is_size(test) else None

    def is_switch(self, node: ast.expr) -> bool:
        """Whether `node` says that DCP is on, by its name."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return name in self.vocabulary.switches

    def _combined(self, test: ast.BoolOp, sizes: tuple[int, ...]) -> bool | None:
        values = [self._truth(value, sizes) for value in test.values]
        deciding = isinstance(test.op, ast.Or)
        if deciding in values:
            return deciding
        return None if None in values else not deciding

    def _compared(
        self, left: ast.expr, operator: ast.cmpop, right: ast.expr, sizes: tuple[int, ...]
    ) -> bool | None:
        if self.is_switch(left) and isinstance(right, ast.Constant) and right.value is None:
            # An object that is there where DCP is on.
            found = {ast.IsNot: sizes is _ON, ast.Is: sizes is not _ON}
            return found.get(type(operator))
        if not self.is_size(left) and not self.is_rank(left):
            left, right, operator = right, left, mirrored(operator)
        limit = number(right)
        if self.is_size(left) and limit is not None:
            outcomes = {compare(size, operator, limit) for size in sizes}
        elif self.is_rank(left) and sizes is _ON and limit is not None:
            # Without DCP, a number that stands for no rank may be there.
            outcomes = {compare(rank, operator, limit) for rank in range(sizes[-1])}
        elif self.is_rank(left) and sizes is _ON and self.is_size(right):
            outcomes = {compare(rank, operator, n) for n in sizes for rank in range(n)}
        else:
            return None
        return outcomes.pop() if len(outcomes) == 1 else None

    def is_size(self, node: ast.expr) -> bool:
        """Whether `node` is the DCP world size."""
        if isinstance(node, ast.Name):
            return node.id in self.aliases or node.id in self.vocabulary.sizes
        if isinstance(node, ast.Attribute):
            return node.attr in self.vocabulary.sizes or (
                node.attr in self.vocabulary.group_sizes and self.is_group(node.value)
            )
        if not isinstance(node, ast.Call) or not node.args:
            return False
        asked, called = node.args[-1], dotted_name(node.func)
        if called == "getattr" and len(node.args) > 1:
            asked = node.args[1]
            return isinstance(asked, ast.Constant) and asked.value in self.vocabulary.sizes
        held = (dotted_name(asked) or "").rpartition(".")[2]
        return called == "len" and held in self.vocabulary.members

    def is_rank(self, node: ast.expr) -> bool:
        """Whether `node` is this rank's number in the DCP group."""
        if isinstance(node, ast.Name):
            return node.id in self.vocabulary.ranks
        return isinstance(node, ast.Attribute) and (
            node.attr in self.vocabulary.ranks
            or (node.attr in self.vocabulary.group_ranks and self.is_group(node.value))
        )

    def is_group(self, node: ast.expr) -> bool:
        """Whether `node` is the DCP process group, by its getter or an attribute that holds it."""
        if isinstance(node, ast.Call):
            getters = {name.rpartition(".")[2] for name in self.vocabulary.groups}
            return self.canonical(dotted_name(node.func) or "").rpartition(".")[2] in getters
        if isinstance(node, ast.Attribute) and node.attr in self.vocabulary.group_names:
            return True
        return dotted_name(node) in self.groups

    def learn(self, node: ast.stmt) -> None:
        """Take note of names that are assigned the DCP world size or group."""
        if not isinstance(node, ast.Assign):
            return
        if self.is_size(node.value):
            self.aliases |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif self.is_group(node.value):
            self.groups |= {name for t in node.targets if (name := dotted_name(t))}


@dataclass(frozen=True, slots=True)
class Running:
    """A statement that can run when DCP is on. certain: it then runs whenever the function does.

    opened: it stands in a branch that DCP opens; exclusive: and that nothing else does.
    """

    node: ast.stmt
    certain: bool
    opened: bool = False
    exclusive: bool = False


def running(function: ast.FunctionDef | ast.AsyncFunctionDef, guards: Guards) -> Iterator[Running]:
    """The statements of `function` that can run when DCP is on, in order. `guards` learns."""
    walk = _Walk(guards)
    walk.block(function.body, _Under(certain=True))
    return iter(walk.found)


@dataclass(frozen=True, slots=True)
class _Under:
    """What is known of the block a statement stands in; see `Running`."""

    certain: bool
    opened: bool = False
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class _Flow:
    """falls: control can reach the next statement. leaves: it can also leave the function."""

    falls: bool
    leaves: bool


@dataclass(slots=True)
class _Walk:
    guards: Guards
    found: list[Running] = field(default_factory=list)

    def block(self, body: list[ast.stmt], under: _Under) -> _Flow:
        leaves = False
        for node in body:
            self.guards.learn(node)
            self.found.append(Running(node, under.certain, under.opened, under.exclusive))
            flow = self._statement(node, under)
            leaves = leaves or flow.leaves
            if not flow.falls:
                return _Flow(False, leaves)
            under = replace(under, certain=under.certain and not flow.leaves)
            if isinstance(node, ast.If) and self._sends_away(node):
                under = replace(under, opened=True, exclusive=True)
        return _Flow(True, leaves)

    def _statement(self, node: ast.stmt, under: _Under) -> _Flow:
        if isinstance(node, (ast.Return, ast.Raise)):
            return _Flow(False, True)
        if isinstance(node, (ast.Break, ast.Continue)):
            return _Flow(False, False)
        if isinstance(node, ast.Assert):
            return _Flow(self.guards.truth(node.test) is not False, False)
        if isinstance(node, ast.If):
            return self._branch(node, under)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.block(node.body, under)
        maybe = replace(under, certain=False)
        flows = [self.block(inner, maybe) for inner in _uncertain_blocks(node)]
        return _Flow(True, any(flow.leaves for flow in flows))

    def _sends_away(self, node: ast.If) -> bool:
        """Whether nothing but DCP gets past `node`: `if dcp_size == 1: return …`."""
        return isinstance(node.body[-1], (ast.Return, ast.Raise)) and self.guards.is_exclusive(
            node.test, False
        )

    def _branch(self, node: ast.If, under: _Under) -> _Flow:
        truth = self.guards.truth(node.test)
        if truth is None:
            maybe = replace(under, certain=False)
            only = maybe
            if self.guards.needs_dcp(node.test):
                only = replace(maybe, opened=True, exclusive=True)
            taken, other = self.block(node.body, only), self.block(node.orelse, maybe)
            return _Flow(taken.falls or other.falls, taken.leaves or other.leaves)
        exclusive = under.exclusive or self.guards.is_exclusive(node.test, truth)
        live = node.body if truth else node.orelse
        return self.block(live, _Under(under.certain, True, exclusive))


def _uncertain_blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Bodies of loops, `try` statements and cases: whether they run is not followed."""
    if isinstance(node, ast.Match):
        yield from (case.body for case in node.cases)
    elif not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        # `ast.TryStar` is a class of its own, which Python 3.10 does not have.
        for name in ("body", "orelse", "finalbody"):
            yield getattr(node, name, [])
        for handler in getattr(node, "handlers", []):
            yield handler.body


def mirrored(operator: ast.cmpop) -> ast.cmpop:
    """The comparison with its sides exchanged."""
    pairs = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
    return pairs[type(operator)]() if type(operator) in pairs else operator


def compare(left: int, operator: ast.cmpop, right: int) -> bool | None:
    """How two numbers compare; None where it is no comparison of numbers."""
    if isinstance(operator, (ast.Eq, ast.Is)):
        return left == right
    if isinstance(operator, (ast.NotEq, ast.IsNot)):
        return left != right
    if isinstance(operator, ast.Lt):
        return left < right
    if isinstance(operator, ast.LtE):
        return left <= right
    if isinstance(operator, ast.Gt):
        return left > right
    return left >= right if isinstance(operator, ast.GtE) else None
