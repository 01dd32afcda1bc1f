"""The expressions of a function with its local variables put in, path by path."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import spelled
from dcplint.flow.functions import Function, blocks, callee_name, expressions
from dcplint.source.tree import children, copied, walk
from dcplint.units.evaluate import ELEMENTWISE
from dcplint.units.proof import compares_rank
from dcplint.units.ranks import Ranks
from dcplint.units.roles import Role, role

_OPAQUE = ast.Name("?")
_PATHS = 24
_LARGE = 120
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMING = (ast.Name, ast.Attribute, ast.Call)
_CARRIERS = (ast.BinOp, ast.Name, ast.Attribute, ast.Compare, ast.UnaryOp, ast.IfExp, ast.Subscript)
Env = Mapping[str, ast.expr]


@dataclass(frozen=True, slots=True)
class Written:
    """An expression as written, and with what its variables hold put in.

    origins: what the code calls, by dotted name, that which the meaning gives a telling name.
    tests: what compares with the rank and holds where the expression is reached.
    """

    statement: ast.stmt
    node: ast.expr
    meaning: ast.expr
    origins: Mapping[str, str]
    tests: tuple[ast.expr, ...]


def written(function: Function, ranks: Ranks) -> Iterator[Written]:
    """Every expression of the function that computes with the rank, by path.

    Rank and size, and lengths and places, are given names that say what they are. A variable that
    is set in a loop or in another way than by an assignment is opaque.
    """
    slice_ = _Slice.of(function, ranks.named(function))
    if slice_.roots:
        held = _enclosing(function, slice_)
        named, origins = dict(slice_.named), {}
        for node, name in ranks.dealt.named(function):
            origins[name] = dotted_name(node) or ""
            if isinstance(node, ast.Name):
                held[node.id] = ast.Name(name, ast.Load())
            else:
                named[spelled(node)] = name
        found: list[Written] = []
        _block(
            function.node.body, [_Path(held)], replace(slice_, named=named, origins=origins), found
        )
        yield from found


def _enclosing(function: Function, slice_: _Slice) -> dict[str, ast.expr]:
    """What the variables of the enclosing function hold that it sets once, whatever happens."""
    outer = function.outer
    if outer is None:
        return {}
    stores: dict[str, list[ast.stmt]] = {}
    for node in outer.homes:
        for name in () if isinstance(node, _SCOPES) else _stored(node):
            stores.setdefault(name, []).append(node)
    return {
        target.id: _held(target, node.value, {}, slice_)
        for (node,) in (nodes for nodes in stores.values() if len(nodes) == 1)
        if isinstance(node, ast.Assign) and outer.homes[node].parent is None
        for target in node.targets
        if isinstance(target, ast.Name) and target.id not in function.local_names
    }


@dataclass(frozen=True, slots=True)
class _Path:
    """A way through the function: what its variables hold, and the tests as in Written."""

    env: Env
    tests: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True)
class _Slice:
    """The statements that matter.

    roots: those that compute with the rank. needed: the variables that go into them. named: what
    rank and size, and in the end lengths too, are called besides. origins: as in Written.
    """

    roots: frozenset[ast.stmt]
    needed: frozenset[str]
    named: Mapping[str, str]
    origins: Mapping[str, str]

    @classmethod
    def of(cls, function: Function, named: Mapping[str, str]) -> _Slice:
        assigned = [
            (_stored(target), set(_leaves(node.value, named)))
            for node in function.homes
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ]
        tainted = _closed(set(), [(t, v) for t, v in assigned if t], _is_rank_name)
        roots = {
            node
            for node, nodes in function.own_nodes.items()
            for inner in (node, *nodes)
            if isinstance(inner, (ast.BinOp, ast.Compare, ast.AugAssign))
            and any(leaf in tainted or _is_rank_name(leaf) for leaf in _leaves(inner, named))
        }
        needed = {leaf for root in roots for e in expressions(root) for leaf in _leaves(e, named)}
        before = -1
        while len(needed) > before:
            before = len(needed)
            for targets, leaves in assigned:
                if targets & needed:
                    needed |= leaves
        return cls(frozenset(roots), frozenset(needed), named, {})

    def matters(self, node: ast.stmt) -> bool:
        """Whether a statement, or one inside it, computes with the rank or sets what goes in."""
        if node in self.roots or _stored(node) & self.needed:
            return True
        return any(self.matters(inner) for block in blocks(node) for inner in block)

    def written(self, statement: ast.stmt, node: ast.expr, said: ast.expr, path: _Path) -> Written:
        """An expression of a statement; `said` is what it comes to."""
        meaning = _put_in(said, path.env, self.named)
        return Written(statement, node, meaning, self.origins, path.tests)

    def under(self, path: _Path, test: ast.expr) -> _Path:
        """The path where a test holds; what does not compare with the rank says nothing."""
        said = _put_in(test, path.env, self.named)
        return replace(path, tests=(*path.tests, said)) if compares_rank(said) else path


def _closed(
    names: set[str], assigned: list[tuple[frozenset[str], set[str]]], starts: Callable[[str], bool]
) -> set[str]:
    """The variables into which something that `starts` goes."""
    before = -1
    while len(names) > before:
        before = len(names)
        for targets, leaves in assigned:
            if leaves & names or any(map(starts, leaves)):
                names |= targets
    return names


def _leaves(node: ast.AST, named: Mapping[str, str]) -> Iterator[str]:
    """The dotted names that an expression computes with, not what it hands to other functions."""
    if named and isinstance(node, _NAMING) and (name := named.get(spelled(node))):
        yield name
        return
    if isinstance(node, (ast.Name, ast.Attribute)):
        dotted = dotted_name(node)
        if dotted is not None:
            yield dotted
        return
    if isinstance(node, ast.Call):
        for argument in node.args:
            yield from _leaves(argument, named)
        if isinstance(node.func, ast.Attribute):
            yield from _leaves(node.func.value, named)
        for keyword in node.keywords:
            if keyword.arg in ("min", "max", "a_min", "a_max"):
                yield from _leaves(keyword.value, named)
        return
    for child in children(node):
        yield from _leaves(child, named)


def _is_rank_name(dotted: str) -> bool:
    return role(ast.Name(dotted.rpartition(".")[2])) is Role.RANK


def _block(
    body: list[ast.stmt], paths: list[_Path], slice_: _Slice, found: list[Written]
) -> list[_Path]:
    for node in body:
        leaves = isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break))
        if not leaves and not slice_.matters(node):
            continue
        paths = [after for path in paths for after in _statement(node, path, slice_, found)]
        if len(paths) > _PATHS:
            paths = [_merged(paths)]
    return paths


def _statement(node: ast.stmt, path: _Path, slice_: _Slice, found: list[Written]) -> list[_Path]:
    if isinstance(node, _SCOPES):
        return [path]
    where = _where_masked(node, path, slice_)
    if where is not None:
        whole, value, changed = where
        found.append(slice_.written(node, value, changed, path))
        return [_assigned([whole], changed, path, slice_)]
    if node in slice_.roots and not isinstance(node, ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else []
        read = (e for e in expressions(node) if e not in targets)
        found += (slice_.written(node, expression, expression, path) for expression in read)
    if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return []
    if isinstance(node, ast.If):
        return _branches(node, path, slice_, found)
    if isinstance(node, ast.Assign):
        return [_assigned(node.targets, node.value, path, slice_)]
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return [_assigned([node.target], node.value, path, slice_)]
    if isinstance(node, ast.AugAssign):
        changed = ast.BinOp(_loaded(node.target), node.op, node.value)
        if node in slice_.roots:
            found.append(slice_.written(node, node.value, changed, path))
        return [_assigned([node.target], changed, path, slice_)]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _block(node.body, [path], slice_, found)
    unsettled = replace(path, env={**path.env, **dict.fromkeys(_stored(node), _OPAQUE)})
    for inner in blocks(node):
        _block(inner, [unsettled], slice_, found)
    return [unsettled]


def _where_masked(
    node: ast.stmt, path: _Path, slice_: _Slice
) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """Of `x[mask] += v`, by a mask that compares with the rank: `x`, `v` and what `x` is then."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.AugAssign):
        target, value = node.target, node.value
    else:
        return None
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    if not compares_rank(_put_in(target.slice, path.env, slice_.named)):
        return None
    set_to = value
    if isinstance(node, ast.AugAssign):
        set_to = ast.BinOp(target.value, node.op, value)
    return target.value, value, ast.IfExp(target.slice, set_to, target.value)


def _branches(node: ast.If, path: _Path, slice_: _Slice, found: list[Written]) -> list[_Path]:
    body = slice_.under(path, node.test)
    orelse = slice_.under(path, ast.UnaryOp(ast.Not(), node.test))
    held = _block(node.body, [body], slice_, found)
    others = _block(node.orelse, [orelse], slice_, found)
    # Where both sides go on and have changed nothing, the test says nothing any more.
    if held and others and all(after.env == path.env for after in (*held, *others)):
        return [path]
    return held + others


def _assigned(targets: list[ast.expr], value: ast.expr, path: _Path, slice_: _Slice) -> _Path:
    env = path.env
    after = dict(env)
    for target in targets:
        if isinstance(target, ast.Name):
            after[target.id] = _held(target, value, env, slice_)
        elif isinstance(target, ast.Tuple) and _is_divmod(value):
            for index, element in enumerate(target.elts):
                if isinstance(element, ast.Name):
                    half = ast.Subscript(value, ast.Constant(index))
                    after[element.id] = _put_in(half, env, slice_.named)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            if len(target.elts) == len(value.elts):
                for element, part in zip(target.elts, value.elts, strict=True):
                    if isinstance(element, ast.Name):
                        after[element.id] = _put_in(part, env, slice_.named)
        else:
            after.update(dict.fromkeys(_stored(target), _OPAQUE))
            # What is stored into a part of a tensor changes what the whole holds.
            base: ast.expr = target
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                after[base.id] = _OPAQUE
    return replace(path, env=after)


def _held(target: ast.Name, value: ast.expr, env: Env, slice_: _Slice) -> ast.expr:
    """What a variable is given, where that can be arithmetic."""
    if isinstance(value, _CARRIERS):
        held = _put_in(value, env, slice_.named)
        # What lengths differ by is a length of its own, like that of the context alone.
        return _as_length(target) if _is_length(target, held) else held
    if isinstance(value, ast.Call) and callee_name(value).rstrip("_") in ELEMENTWISE:
        return _put_in(value, env, slice_.named)
    if isinstance(value, ast.Call) and callee_name(value) == "load" and role(target) is None:
        # What a kernel loads is what the pointer points to.
        pointers = [n for a in value.args[:1] for n in walk(a) if isinstance(n, ast.Name)]
        named = [n for n in pointers if role(n) in (Role.LENGTH, Role.INDEX)]
        return named[0] if len(named) == 1 else _OPAQUE
    # What another function gives is known by its name, or not at all.
    return target if role(target) is not None else _OPAQUE


def _is_length(target: ast.Name, value: ast.expr) -> bool:
    """Whether it is what a length differs by, as the one name or the other says."""
    if not _is_difference(value):
        return False
    whole = value
    while isinstance(whole, (ast.BinOp, ast.Subscript)):
        whole = whole.left if isinstance(whole, ast.BinOp) else whole.value
    return role(target) is Role.LENGTH or (role(target) is None and role(whole) is Role.LENGTH)


def _as_length(target: ast.Name) -> ast.Name:
    return target if role(target) is Role.LENGTH else ast.Name(f"{target.id}_len", ast.Load())


def _is_difference(value: ast.expr) -> bool:
    """Whether it is a difference of things that are no part of the layout, as of two lengths."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub):
        return False
    return all(
        _is_difference(side)
        or (isinstance(side, (ast.Name, ast.Attribute, ast.Subscript)) and not _is_layout(side))
        for side in (value.left, value.right)
    )


def _is_layout(node: ast.expr) -> bool:
    return any(
        isinstance(inner, ast.expr)
        and (role(inner) not in (None, Role.LENGTH) or _is_opaque(inner))
        for inner in walk(node)
    )


def _is_divmod(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted_name(value.func) == "divmod"


@lru_cache(maxsize=4096)
def _stored(node: ast.AST) -> frozenset[str]:
    names = [inner for inner in walk(node) if isinstance(inner, ast.Name)]
    return frozenset([name.id for name in names if isinstance(name.ctx, ast.Store)])


def _loaded(target: ast.expr) -> ast.expr:
    found = copied(target)
    for node in walk(found):
        if hasattr(node, "ctx"):
            node.ctx = ast.Load()
    return found


def _merged(paths: list[_Path]) -> _Path:
    """What all of them agree on."""
    names = {name: None for path in paths for name in path.env}
    env = {name: _agreed([path.env.get(name) for path in paths]) for name in names}
    first, *others = paths
    return _Path(env, tuple(t for t in first.tests if all(t in path.tests for path in others)))


def _agreed(values: list[ast.expr | None]) -> ast.expr:
    first = values[0]
    if first is None or None in values:
        return _OPAQUE
    distinct = {id(value): value for value in values if value is not None}
    same = len(distinct) == 1 or len({ast.dump(value) for value in distinct.values()}) == 1
    return first if same else _OPAQUE


def _is_computed(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) or _is_opaque(node)


def _is_opaque(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == _OPAQUE.id


class _PutIn(ast.NodeTransformer):
    def __init__(self, env: Env, named: Mapping[str, str]) -> None:
        self.env = env
        self.named = named

    def visit(self, node: ast.AST) -> Any:
        """What is known for the rank or the size is called so."""
        if self.named and isinstance(node, _NAMING) and (name := self.named.get(spelled(node))):
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A variable is what it was given; a length that is merely fetched keeps its name."""
        value = self.env.get(node.id)
        if value is None:
            return node
        if role(node) is not None and not any(map(_is_computed, walk(value))):
            return node
        return value


def _put_in(node: ast.expr, env: Env, named: Mapping[str, str]) -> ast.expr:
    found: ast.expr = _PutIn(env, named).visit(copied(node))
    return _OPAQUE if sum(1 for _ in walk(found)) > _LARGE else found
