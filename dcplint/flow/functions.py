"""The functions that a flow analysis may walk through, and who calls whom.

The universe is every function of the modules it is given. Calls are found by name first, from
text, so that only functions that matter are ever parsed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.facts.extract import Place, local_bindings
from dcplint.facts.functions import parameters
from dcplint.facts.model import Binding, FunctionFacts, Source
from dcplint.flow.conditions import telling
from dcplint.flow.graph import Graph, Node
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Module
from dcplint.source.tree import own_nodes

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_NAMES = re.compile(r"\w+")
_NAMING = {ast.Name: "id", ast.Attribute: "attr", ast.keyword: "arg", ast.arg: "arg"}
_REFERRED = re.compile(r"(?![ \t]*[\w(:]|[ \t]*=(?!=))")
_OWN_CALLS = ("self.", "cls.", "def ")
# What follows an attribute that is assigned to, or whose own attribute is; seldom anything else.
_ASSIGNED = re.compile(r"\b(?:\.[\w.]+)?\s*(?:[-+*/|&]?=(?!=)|:[^\n=]*=(?!=)|[,)][^\n()=]*=(?!=))")


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

    @property
    def scopes(self) -> tuple[tuple[Binding, ...], ...]:
        """Bindings of the enclosing functions and its own, innermost last."""
        outer = self.outer.scopes if self.outer else ()
        return (*outer, self.bindings)

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
            node: tuple(inner for inner in nodes if isinstance(inner, ast.Call))
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
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
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
    for child in ast.iter_child_nodes(node):
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


Setting = tuple[Function, "ast.expr | None", "ast.expr | None"]
"""A method, the value it sets an attribute to, and the annotation it gives it."""


@dataclass
class Universe:
    """All functions of `modules`.

    settings and instances remember what `flow.types` has worked out.
    """

    program: Program
    modules: tuple[Module, ...]
    _parsed: dict[tuple[Module, tuple[int, int]], tuple[Function, ...]] = field(
        default_factory=dict
    )
    _sites: dict[tuple[int, str], tuple[CallSite, ...]] = field(default_factory=dict)
    _called: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _callers: dict[Function, tuple[CallSite, ...]] = field(default_factory=dict)
    _named: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _texts: dict[tuple[Module, tuple[int, int]], str] = field(default_factory=dict)
    settings: dict[tuple[ClassSymbol, str], tuple[Setting, ...]] = field(default_factory=dict)
    _ancestry: dict[ClassSymbol, frozenset[ClassSymbol]] = field(default_factory=dict)
    instances: dict[tuple[Function, ast.expr], frozenset[ClassSymbol]] = field(default_factory=dict)

    @cached_property
    def entries(self) -> tuple[tuple[Module, FunctionFacts, ClassSymbol | None, str], ...]:
        """Every outermost function and method: module, facts, class, source."""
        found = []
        for module in self.modules:
            owned: list[tuple[FunctionFacts, ClassSymbol | None]]
            owned = [(f, None) for f in module.facts.functions]
            owned += [(m, symbol) for symbol in module.classes for m in symbol.facts.methods]
            for facts, owner in owned:
                found.append((module, facts, owner, self.text(module, facts)))
        return tuple(found)

    def _calling(self, name: str) -> tuple[int, ...]:
        """The entries that seem to call something called `name`, or define it."""
        if name not in self._called:
            word = f"{name}("
            found = []
            for index in self._spelled(name):
                text = self.entries[index][3]
                at = text.find(word)
                while at > 0 and _ends_word(text[at - 1]):
                    at = text.find(word, at + 1)
                if at >= 0:
                    found.append(index)
            self._called[name] = tuple(found)
        return self._called[name]

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, (_, facts, _, _) in enumerate(self.entries):
            found.setdefault(facts.name, []).append(index)
        return found

    @cached_property
    def _naming(self) -> tuple[str, dict[str, list[int]]]:
        """The names that occur, one to a line, and the entries of each."""
        found: dict[str, list[int]] = {}
        for index, (_, _, _, text) in enumerate(self.entries):
            for name in set(_NAMES.findall(text)):
                found.setdefault(name, []).append(index)
        return "\n".join(("", *found, "")), found

    def _spelled(self, name: str) -> Sequence[int]:
        """The entries in which `name` occurs, in order."""
        return self._naming[1].get(name, ())

    def _with_name(self, part: str) -> Iterable[int]:
        """The entries in which a name that contains `part` occurs, in order."""
        if part not in self._named:
            names, entries = self._naming
            found: list[list[int]] = []
            at = names.find(part)
            while at >= 0:
                end = names.index("\n", at)
                found.append(entries[names[names.rindex("\n", 0, at) + 1 : end]])
                at = names.find(part, end)
            merged = found[0] if len(found) == 1 else sorted({i for some in found for i in some})
            self._named[part] = tuple(merged)
        return self._named[part]

    def containing(self, word: str) -> Iterator[int]:
        """The entries whose text contains `word`."""
        part = max(_NAMES.findall(word), key=len, default="")
        near = self._with_name(part) if part else range(len(self.entries))
        return (i for i in near if part == word or word in self.entries[i][3])

    def sets(self, module: Module, facts: FunctionFacts, dotted: str) -> bool:
        """Whether the text of a function seems to assign to `dotted`."""
        text = self.text(module, facts)
        at = text.find(dotted)
        while at >= 0:
            if _ASSIGNED.match(text, at + len(dotted)):
                return True
            at = text.find(dotted, at + 1)
        return False

    def stored(self, attribute: str) -> dict[int, set[bool]]:
        """The entries that seem to assign to `attribute`, and whether it is one of `self`."""
        word = f".{attribute}"
        found: dict[int, set[bool]] = {}
        for index in self._with_name(attribute):
            text = self.entries[index][3]
            at = text.find(word)
            while at >= 0:
                if _ASSIGNED.match(text, at + len(word)):
                    found.setdefault(index, set()).add(text.endswith("self", 0, at))
                at = text.find(word, at + 1)
        return found

    def referring(self, name: str, before: str, other: str = "") -> Iterator[Function]:
        """Functions whose text names `name` without calling or assigning to it there.

        before: what may stand before the name; other: what may not.
        """
        for index in self._spelled(name):
            text = self.entries[index][3]
            at = text.find(name)
            while at >= 0:
                after = at + len(name)
                stands = text[at - 1] in before if before else not _ends_word(text[at - 1], other)
                if at and stands and _REFERRED.match(text, after):
                    yield from self.functions_of(index)
                    break
                at = text.find(name, after)

    def mentioning(self, word: str, pattern: re.Pattern[str] | None = None) -> Iterator[Function]:
        """Every function, nested ones included, whose outermost function contains `word`.

        pattern: what its text must match too.
        """
        for index in self.containing(word):
            if pattern is None or pattern.search(self.entries[index][3]):
                yield from self.functions_of(index)

    def matching(
        self,
        pattern: re.Pattern[str],
        wanted: Callable[[ClassSymbol | None], bool] = lambda owner: True,
    ) -> Iterator[Function]:
        """Every function, nested ones included, whose outermost function's text matches.

        wanted: which classes' methods are looked at (None: functions of no class).
        """
        for index, (_, _, owner, text) in enumerate(self.entries):
            if wanted(owner) and pattern.search(text):
                yield from self.functions_of(index)

    def heirs(self, owner: ClassSymbol, name: str) -> Iterator[Function]:
        """Methods called `name` of the classes that derive from `owner`."""
        for index in self._by_name.get(name, ()):
            heir = self.entries[index][2]
            if heir is not None and heir is not owner and owner in self.ancestry(heir):
                yield from self.functions_of(index)[:1]

    def ancestry(self, symbol: ClassSymbol) -> frozenset[ClassSymbol]:
        """A class and those that it derives from."""
        if symbol not in self._ancestry:
            self._ancestry[symbol] = frozenset(self.program.mro(symbol).classes)
        return self._ancestry[symbol]

    def named(self, name: str) -> Iterator[Function]:
        """Functions and methods called `name`, nested ones excluded."""
        for index in self._by_name.get(name, ()):
            yield from self.functions_of(index)[:1]

    def calling(self, name: str) -> Iterator[tuple[Module, str]]:
        """Module and qualified name of the functions that call something called `name`."""
        for index in self._calling(name):
            module, facts, _, _ = self.entries[index]
            yield module, facts.qualname

    def keys_named(self, name: str) -> Iterator[tuple[Module, str]]:
        """Module and qualified name of the functions called `name`."""
        for index in self._by_name.get(name, ()):
            module, facts, _, _ = self.entries[index]
            yield module, facts.qualname

    def text(self, module: Module, facts: FunctionFacts) -> str:
        """The source of the function that `facts` describes."""
        key = (module, facts.lines)
        if key not in self._texts:
            lines = self.program.modules.text(module.tree, module.facts.path).lines
            self._texts[key] = "\n".join(lines[facts.lines[0] - 1 : facts.lines[1]])
        return self._texts[key]

    def function(self, module: Module, facts: FunctionFacts) -> Function | None:
        """The function that `facts` describes."""
        for index in self._by_name.get(facts.name, ()):
            entry = self.entries[index]
            if entry[0] is module and entry[1].lines == facts.lines:
                return next(iter(self.functions_of(index)), None)
        node = self.program.function(module, facts)
        if node is None:
            return None
        key = (module, facts.lines)
        if key not in self._parsed:  # an ancestor's method, in a module outside the universe
            owner = next((c for c in module.classes if facts in c.facts.methods), None)
            self._parsed[key] = tuple(_family(Function(module, node, facts.qualname, owner)))
        return self._parsed[key][0]

    def calls_of(self, name: str) -> tuple[CallSite, ...]:
        """Every call, anywhere in the universe, whose callee's last name is `name`."""
        return tuple(site for index in self._calling(name) for site in self._calls_in(index, name))

    def _calls_in(self, index: int, name: str) -> tuple[CallSite, ...]:
        """The calls of an entry whose callee's last name is `name`."""
        key = (index, name)
        if key not in self._sites:
            self._sites[key] = tuple(
                CallSite(function, statement, call)
                for function in self.functions_of(index)
                for statement, made in function.calls.items()
                for call in made
                if callee_name(call) == name
            )
        return self._sites[key]

    def functions_of(self, index: int) -> tuple[Function, ...]:
        """The function of an entry, then those nested in it."""
        module, facts, owner, _ = self.entries[index]
        key = (module, facts.lines)
        if key not in self._parsed:
            node = self.program.function(module, facts)
            top = Function(module, node, facts.qualname, owner) if node is not None else None
            self._parsed[key] = tuple(_family(top)) if top is not None else ()
        return self._parsed[key]

    # Who is called

    def callees(
        self, function: Function, call: ast.Call, statement: ast.stmt | None = None
    ) -> tuple[Function, ...]:
        """The functions of the universe that `call`, made by `statement`, may run."""
        callee = call.func
        if isinstance(callee, ast.Name):
            return self.plain(function, callee.id)
        if not isinstance(callee, ast.Attribute):
            return ()
        receiver = callee.value
        if isinstance(receiver, ast.Name) and receiver.id in ("self", "cls") and function.owner:
            return self._methods(function.owner, callee.attr)
        if isinstance(receiver, ast.Call) and dotted_name(receiver.func) == "super":
            return self._parent_method(function, callee.attr)
        # Imported here: types are told by functions, which are found here.
        from dcplint.flow.types import classes_of, narrowed

        owners = narrowed(self, function, statement, receiver) if statement else frozenset()
        owners = owners or classes_of(self, function, receiver)
        if owners:
            targets = (f for owner in owners for f in self._methods(owner, callee.attr))
            return tuple(dict.fromkeys(targets))
        dotted = dotted_name(callee)
        if dotted is not None:
            found = self.program.linker.name(function.module, dotted, function.scopes)
            if isinstance(found, FunctionSymbol):
                target = self.function(found.module, found.facts)
                return (target,) if target is not None else ()
            owner = self.program.linker.name(
                function.module, dotted.rpartition(".")[0], function.scopes
            )
            if isinstance(owner, ClassSymbol):
                method = self.program.method(owner, callee.attr)
                exact = self.function(method.owner.module, method.facts) if method else None
                return (exact,) if exact is not None else ()
        return tuple(
            function
            for index in self._by_name.get(callee.attr, ())
            if self.entries[index][2] is not None
            for function in self.functions_of(index)[:1]
        )

    def plain(self, function: Function, name: str) -> tuple[Function, ...]:
        """The function that a bare `name` stands for in `function`."""
        scope: Function | None = function
        while scope is not None:
            for nested in scope.nested:
                if nested.node.name == name:
                    return (nested,)
            scope = scope.outer
        found = self.program.linker.name(function.module, name, function.scopes)
        if isinstance(found, FunctionSymbol):
            target = self.function(found.module, found.facts)
            return (target,) if target is not None else ()
        return ()

    def _methods(self, owner: ClassSymbol, name: str) -> tuple[Function, ...]:
        """The method that `owner` has, and those by which subclasses replace it."""
        found = self.program.method(owner, name)
        targets = [self.function(found.owner.module, found.facts)] if found else []
        targets += self.heirs(owner, name)
        return tuple(target for target in targets if target is not None)

    def _parent_method(self, function: Function, name: str) -> tuple[Function, ...]:
        """What `super().name()` runs: the next class's method, or, where a base is decided at run
        time (`class X(underlying_builder)`), that of any class which plays the base's role."""
        if function.owner is None:
            return ()
        program = self.program
        for entry in program.mro(function.owner).entries[1:]:
            if isinstance(entry, ClassSymbol):
                for facts in entry.facts.methods:
                    if facts.name == name:
                        target = self.function(entry.module, facts)
                        return (target,) if target is not None else ()
            elif entry.role:
                return tuple(self._playing(entry.role, name, function.owner))
        return ()

    def _playing(self, role: str, name: str, other: ClassSymbol) -> Iterator[Function]:
        """The methods called `name` of the classes that play `role`, save one class's."""
        for index in self._by_name.get(name, ()):
            owner = self.entries[index][2]
            if owner is not None and owner is not other and role in self.program.roles(owner):
                yield from self.functions_of(index)[:1]

    def callers(self, target: Function) -> tuple[CallSite, ...]:
        """The calls that may run `target`; for a constructor, those that make an instance too."""
        if target not in self._callers:
            self._callers[target] = tuple(self._find_callers(target))
        return self._callers[target]

    def _chained(self, target: Function) -> Iterator[CallSite]:
        """The calls of an `__init__` by those of the classes that derive from its class."""
        assert target.owner is not None
        for heir in self.heirs(target.owner, "__init__"):
            for statement, made in heir.calls.items():
                for call in made:
                    if callee_name(call) == "__init__":
                        yield CallSite(heir, statement, call)

    def _possible_calls(self, target: Function) -> Iterator[CallSite]:
        """The calls by its name, without those of other classes' own methods: by text, unparsed."""
        name = target.node.name
        for index in self._calling(name):
            _, _, owner, text = self.entries[index]
            if owner is None or self._are_related(owner, target.owner) or _is_called(text, name):
                yield from self._calls_in(index, name)

    def _are_related(self, one: ClassSymbol, other: ClassSymbol | None) -> bool:
        if other is None:
            return False
        return one in self.ancestry(other) or other in self.ancestry(one)

    def _find_callers(self, target: Function) -> Iterator[CallSite]:
        is_constructor = target.node.name == "__init__" and target.owner is not None
        sites = self._chained(target) if is_constructor else self._possible_calls(target)
        for site in sites:
            found = self.callees(site.function, site.call, site.statement)
            if target in found and fits(target, site.call):
                yield site
        if is_constructor and target.owner is not None:
            for site in self.calls_of(target.owner.facts.name):
                dotted = dotted_name(site.call.func) or ""
                made = self.program.linker.name(site.function.module, dotted, site.function.scopes)
                if made is target.owner and fits(target, site.call):
                    yield site


def _ends_word(character: str, other: str = "") -> bool:
    return character == "_" or character.isalnum() or character in other


def _is_called(text: str, name: str) -> bool:
    """Whether a method's text may call `name` of anything but its own instance or class."""
    word = f"{name}("
    at = text.find(word)
    while at >= 0:
        if not _ends_word(text[at - 1]) and not text.endswith(_OWN_CALLS, 0, at):
            return True
        at = text.find(word, at + 1)
    return "class " in text


def _family(function: Function) -> Iterator[Function]:
    yield function
    for nested in function.nested:
        yield from _family(nested)


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


def argument(target: Function, call: ast.Call, name: str) -> ast.expr | None:
    """What `call` passes for parameter `name`: an argument, or the default.

    None where it cannot be told (`*args`, `**kwargs`).
    """
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    spec = target.node.args
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    offset = 1 if target.is_method and not _is_unbound(target, call) else 0
    if name in positional:
        index = positional.index(name) - offset
        before = call.args[: index + 1]
        if any(isinstance(a, ast.Starred) for a in before):
            return None
        if 0 <= index < len(call.args):
            return call.args[index]
    if any(k.arg is None for k in call.keywords):
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
