"""A function with its body, and how a call hands it its arguments."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.facts.extract import Place, local_bindings
from dcplint.facts.functions import parameters
from dcplint.facts.model import Binding, Source
from dcplint.flow.conditions import telling
from dcplint.flow.graph import Graph, Node
from dcplint.program.link import Linker
from dcplint.program.symbols import ClassSymbol, Module, Symbol
from dcplint.source.tree import TRY, Definition, children, own_nodes

COMPOUND = {ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match, *TRY}
"""The statements that hold blocks of the same scope."""

_NAMING = {ast.Name: "id", ast.Attribute: "attr", ast.keyword: "arg", ast.arg: "arg"}


@dataclass(frozen=True, eq=False)
class Function:
    """A function with its body. Compared by identity.

    owner: the class whose method it is, or whose method encloses it. outer: the enclosing
    function.
    """

    module: Module
    node: Definition
    qualname: str
    owner: ClassSymbol | None = None
    outer: Function | None = None
    _named: dict[str, Symbol] = field(init=False, default_factory=dict)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """All parameter names, in order."""
        return parameters(self.node)

    @cached_property
    def homes(self) -> dict[ast.stmt, Home]:
        """Where each statement of the body stands."""
        found: dict[ast.stmt, Home] = {}
        _settle(self.node.body, None, found)
        return found

    @cached_property
    def mentions(self) -> Mapping[str, Collection[ast.stmt]]:
        """The statements that themselves name a variable, an attribute or a keyword argument."""
        found: dict[str, dict[ast.stmt, None]] = {}
        for statement, nodes in self.own_nodes.items():
            for node in nodes:
                kind = _NAMING.get(node.__class__)
                name = getattr(node, kind) if kind else None
                if name:
                    found.setdefault(name, {})[statement] = None
        return {name: statements.keys() for name, statements in found.items()}

    @cached_property
    def nested(self) -> tuple[Function, ...]:
        """Functions defined directly in this one's body."""
        return tuple(
            Function(self.module, node, f"{self.qualname}.<locals>.{node.name}", self.owner, self)
            for node in self.homes
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        )

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """What its own statements bind."""
        facts = self.module.facts
        return local_bindings(self.node, Place(facts.path, facts.name, facts.is_package))

    @cached_property
    def scopes(self) -> tuple[tuple[Binding, ...], ...]:
        """Bindings of the enclosing functions and its own, innermost last."""
        outer = self.outer.scopes if self.outer else ()
        return (*outer, self.bindings)

    def named(self, linker: Linker, dotted: str) -> Symbol:
        """What a dotted name stands for in it."""
        if dotted not in self._named:
            self._named[dotted] = linker.name(self.module, dotted, self.scopes)
        return self._named[dotted]

    @cached_property
    def graph(self) -> Graph:
        """The control flow of the body."""
        return Graph(self.node.body, self.own_nodes)

    @cached_property
    def own_nodes(self) -> dict[ast.stmt, tuple[ast.AST, ...]]:
        """The nodes of each statement's own expressions."""
        return {node: tuple(own_nodes(node)) for node in self.homes}

    @cached_property
    def calls(self) -> dict[ast.stmt, tuple[ast.Call, ...]]:
        """The calls that each statement makes itself; statements without any are left out."""
        found = {
            node: tuple([inner for inner in nodes if isinstance(inner, ast.Call)])
            for node, nodes in self.own_nodes.items()
        }
        return {node: made for node, made in found.items() if made}

    @cached_property
    def telling(self) -> frozenset[str]:
        """Its tests that can contradict each other or an assignment, by dump."""
        tests = [edge.test for node in self.graph.nodes for edge in node.before if edge.test]
        return telling(dict.fromkeys(tests), self.local_names)

    @cached_property
    def local_names(self) -> frozenset[str]:
        """The variables that are its own: not free, not global, not imported."""
        free = {
            name
            for node in self.homes
            if isinstance(node, (ast.Nonlocal, ast.Global))
            for name in node.names
        }
        own = (b.name for b in self.bindings if b.source is not Source.IMPORT)
        return frozenset(own) - free

    def rebinds(self, parameter: str) -> bool:
        """Whether its own statements give `parameter` another value."""
        bound = (b for b in self.bindings if b.source is not Source.PARAMETER)
        return any(binding.name == parameter for binding in bound)

    @cached_property
    def nonlocals(self) -> frozenset[str]:
        """Variables that the functions nested in it may change."""
        inner = (node for nested in self.nested for node in nested.homes)
        return frozenset(n for node in inner if isinstance(node, ast.Nonlocal) for n in node.names)

    @cached_property
    def attributes_set(self) -> frozenset[str]:
        """The attributes that its own statements set, of whatever object."""
        found: set[str] = set()
        for node in self.homes:
            for inner in self.own_nodes[node]:
                if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    found.add(inner.attr)
                elif isinstance(inner, ast.Call) and callee_name(inner) == "setattr":
                    named = [a.value for a in inner.args[1:2] if isinstance(a, ast.Constant)]
                    found |= {name for name in named if isinstance(name, str)}
        return frozenset(found)

    @cached_property
    def yields(self) -> tuple[tuple[ast.stmt, ast.Yield | ast.YieldFrom], ...]:
        """What it yields, with the statements that do."""
        return tuple(
            (node, inner)
            for node, nodes in self.own_nodes.items()
            for inner in nodes
            if isinstance(inner, (ast.Yield, ast.YieldFrom))
        )

    @cached_property
    def only_raises(self) -> bool:
        """Whether it never returns: it is abstract, or refuses."""
        return not self.graph.end.before

    @property
    def is_method(self) -> bool:
        """Whether its first parameter is the instance or the class."""
        if self.owner is None or self.outer is not None:
            return False
        return "staticmethod" not in self.decorators

    @property
    def is_property(self) -> bool:
        """Whether reading the attribute runs it."""
        return bool(self.decorators & {"property", "cached_property"})

    @cached_property
    def decorators(self) -> frozenset[str]:
        """The last names of its decorators."""
        names = (dotted_name(d) or "" for d in self.node.decorator_list)
        return frozenset(name.rpartition(".")[2] for name in names)


@dataclass(frozen=True, slots=True)
class Home:
    """A statement's place: its block, its index there, and the statement that holds the block."""

    block: list[ast.stmt]
    index: int
    parent: ast.stmt | None


def _settle(block: list[ast.stmt], parent: ast.stmt | None, found: dict[ast.stmt, Home]) -> None:
    for index, node in enumerate(block):
        found[node] = Home(block, index, parent)
        if node.__class__ in COMPOUND:
            for inner in blocks(node):
                _settle(inner, node, found)


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement, in source order."""
    if isinstance(node, ast.Match):
        yield from (case.body for case in node.cases)
        return
    yield getattr(node, "body", [])
    for handler in getattr(node, "handlers", []):
        yield handler.body
    yield getattr(node, "orelse", [])
    yield getattr(node, "finalbody", [])


def expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of the statements inside it."""
    for child in children(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def callee_name(call: ast.Call) -> str:
    """The last name of what is called: `m` for `x.y.m()` and `f().m()`."""
    callee = call.func
    if isinstance(callee, ast.Attribute):
        return callee.attr
    return callee.id if isinstance(callee, ast.Name) else ""


def launched(call: ast.Call) -> ast.expr:
    """What a call runs: of `kernel[grid](…)` the kernel."""
    return call.func.value if isinstance(call.func, ast.Subscript) else call.func


@dataclass(frozen=True, slots=True)
class CallSite:
    """One call: the function and the statement it stands in."""

    function: Function
    statement: ast.stmt
    call: ast.Call

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the caller's control flow that make the call."""
        return self.function.graph.at(self.statement)


def fits(target: Function, call: ast.Call) -> bool:
    """Whether the arguments of `call` can be those of `target`: none too many, none missing."""
    spec = target.node.args
    if spec.kwarg is None:
        names = set(target.parameters)
        if any(k.arg is not None and k.arg not in names for k in call.keywords):
            return False
    ordered = [a.arg for a in (*spec.posonlyargs, *spec.args)][1 if target.is_method else 0 :]
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return True
    if len(call.args) > len(ordered) and spec.vararg is None:
        return False
    given = {*ordered[: len(call.args)], *(k.arg for k in call.keywords)}
    optional = set(ordered[len(ordered) - len(spec.defaults) :]) if spec.defaults else set()
    optional |= {a.arg for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d}
    return all(name in given | optional for name in (*ordered, *(a.arg for a in spec.kwonlyargs)))


def written_keywords(call: ast.Call) -> Iterator[ast.keyword]:
    """The keyword arguments of a call, those within `**{"name": x}` and `**dict(name=x)` too.

    What is left of such a mapping, as of any other, comes as a keyword without a name.
    """
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg is not None:
            yield keyword
        elif isinstance(value, ast.Dict):
            for key, item in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield ast.keyword(key.value, item)
                else:
                    rest = item if key is None else ast.Dict([key], [item])
                    yield ast.keyword(None, rest)
        elif isinstance(value, ast.Call) and dotted_name(value.func) == "dict" and not value.args:
            yield from written_keywords(value)
        else:
            yield keyword


def argument(target: Function, call: ast.Call, name: str) -> ast.expr | None:
    """What `call` passes for parameter `name`: an argument, or the default.

    None where it cannot be told (`*args`, `**kwargs`).
    """
    keywords = call.keywords
    if None in [keyword.arg for keyword in keywords]:
        keywords = list(written_keywords(call))
    for keyword in keywords:
        if keyword.arg == name:
            return keyword.value
    spec = target.node.args
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    offset = 1 if target.is_method and not _is_unbound(target, call) else 0
    if name in positional:
        index = positional.index(name) - offset
        before = call.args[: index + 1]
        if ast.Starred in map(type, before):
            return None
        if 0 <= index < len(call.args):
            return call.args[index]
    if any(k.arg is None for k in keywords):
        return None
    return default(target, name)


def receiver(function: Function, target: Function, call: ast.Call, name: str) -> ast.expr | None:
    """The instance that `call`, made in `function`, passes for `name` by being a method call."""
    if not target.is_method or name != target.parameters[0] or _is_unbound(target, call):
        return None
    if not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    if isinstance(owner, ast.Call) and dotted_name(owner.func) == "super":
        return ast.Name(function.parameters[0]) if function.parameters else None
    return owner


def given_once(function: Function, name: str) -> ast.expr | None:
    """What a variable is given by the one assignment that there is."""
    given = [
        statement.value
        for statement in function.mentions.get(name, ())
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    ]
    return given[0] if len(given) == 1 and name not in function.parameters else None


def default(target: Function, name: str) -> ast.expr | None:
    """The default of parameter `name`, if it has one."""
    spec = target.node.args
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    with_default = positional[len(positional) - len(spec.defaults) :] if spec.defaults else []
    if name in with_default:
        return spec.defaults[with_default.index(name)]
    keyword_only = [a.arg for a in spec.kwonlyargs]
    return spec.kw_defaults[keyword_only.index(name)] if name in keyword_only else None


def _is_unbound(target: Function, call: ast.Call) -> bool:
    """`Base.method(self, …)`: the instance is passed along."""
    callee = call.func
    return (
        isinstance(callee, ast.Attribute)
        and isinstance(callee.value, ast.Name)
        and target.owner is not None
        and callee.value.id == target.owner.facts.name
        and "classmethod" not in target.decorators
    )
