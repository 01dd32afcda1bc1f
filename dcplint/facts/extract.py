"""From the tree of a module to its facts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dcplint.facts.classes import attributes
from dcplint.facts.exports import exports, is_open
from dcplint.facts.expressions import lower
from dcplint.facts.functions import VARYING, function_facts, parameters
from dcplint.facts.model import (
    AttributeFact,
    Binding,
    ClassFacts,
    Expression,
    ExternalFact,
    FunctionFacts,
    ModuleFacts,
    Setting,
    Source,
)
from dcplint.facts.positions import first_line, header_position, last_line, position
from dcplint.facts.reads import reads_in
from dcplint.facts.statements import Under, bound, conditions, settings, statements
from dcplint.source.tree import FUNCTIONS, Definition


@dataclass(frozen=True, slots=True)
class Place:
    """Where a module stands: its file, its dotted name, whether it is a package."""

    path: str
    name: str
    is_package: bool

    def absolute(self, target: str | None, level: int) -> str:
        """The absolute name of a relative import's module; `?` in front if it leaves the tree."""
        if level == 0:
            return target or ""
        parts = self.name.split(".") if self.name else []
        up = level - 1 if self.is_package else level
        if up > len(parts):
            return f"?.{target or ''}"
        base = parts[: len(parts) - up] if up else parts
        return ".".join([*base, *([target] if target else [])])


def extract(
    tree: ast.Module,
    place: Place,
    ends: dict[int, int],
    words: frozenset[str] = frozenset(),
    lines: Sequence[int] = (),
) -> ModuleFacts:
    """The facts of a module.

    ends: the real last line of functions whose body is blanked. words: attributes whose reads
    are facts too; lines: where they occur, ascending.
    """
    scope = _Scope(place, ends)
    scope.collect(tree.body)
    scope.descend()
    return ModuleFacts(
        path=place.path,
        name=place.name,
        is_package=place.is_package,
        bindings=tuple(scope.bindings),
        exports=exports(tree),
        classes=tuple(scope.classes),
        functions=tuple(scope.functions),
        externals=tuple(scope.externals),
        reads=tuple(reads_in(tree, words, lines)),
        is_open=is_open(tree),
    )


def local_bindings(node: Definition, place: Place) -> tuple[Binding, ...]:
    """The names that a function's own statements bind, its parameters first."""
    scope = _Scope(place, {}, is_local=True)
    scope.enter(node)
    return tuple(scope.bindings)


_LINKABLE = (
    ast.Name,
    ast.Attribute,
    ast.Constant,
    ast.Subscript,
    ast.Call,
    ast.IfExp,
    ast.NamedExpr,
)


@dataclass(slots=True)
class _Scope:
    """Collects what the statements of one module, class body or function say.

    enclosing: bindings of the functions around it. function: qualified name of the innermost one.
    is_local: only names are wanted, and what they stand for where that can be linked.
    globals: the names that it declares to be the module's.
    """

    place: Place
    ends: dict[int, int]
    prefix: str = ""
    enclosing: tuple[tuple[Binding, ...], ...] = ()
    function: str = ""
    is_class: bool = False
    is_local: bool = False
    bindings: list[Binding] = field(default_factory=list)
    classes: list[ClassFacts] = field(default_factory=list)
    functions: list[FunctionFacts] = field(default_factory=list)
    externals: list[ExternalFact] = field(default_factory=list)
    definitions: list[tuple[ast.ClassDef | Definition, Under]] = field(default_factory=list)
    sets: list[tuple[str, AttributeFact]] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)

    def collect(self, body: Iterable[ast.stmt]) -> None:
        """Collect the statements of this scope."""
        for statement, under in statements(body):
            self._statement(statement, under)

    def enter(self, node: Definition) -> None:
        """Collect the parameters and statements of a function."""
        for name in parameters(node):
            self._bind(name, Source.PARAMETER, node.args, ())
        self.collect(node.body)
        if self.globals:
            self.bindings = [b for b in self.bindings if b.name not in self.globals]

    def descend(self) -> None:
        """Collect classes and functions, which see all of this scope's bindings."""
        for owner, fact in self.sets:
            self.externals.append(ExternalFact(owner, fact, self.enclosing))
        for node, under in self.definitions:
            if isinstance(node, ast.ClassDef):
                self._class(node, under)
            else:
                self._function(node, under)

    def _statement(self, node: ast.stmt, under: Under) -> None:
        if isinstance(node, ast.Import):
            self._import(node, under)
        elif isinstance(node, ast.ImportFrom):
            self._import_from(node, under)
        elif isinstance(node, ast.ClassDef):
            self._bind(node.name, Source.CLASS, node, under)
            self.definitions.append((node, under))
        elif isinstance(node, FUNCTIONS):
            self._bind(node.name, Source.FUNCTION, node, under)
            self.definitions.append((node, under))
        elif isinstance(node, ast.Global):
            self.globals.update(node.names)
        else:
            for target, value in bound(node):
                if isinstance(target, ast.Name):
                    wanted = not self.is_local or isinstance(value, _LINKABLE)
                    given = lower(value) if value is not None and wanted else VARYING
                    self._bind(target.id, Source.ASSIGN, node, under, value=given)
            if self.is_local:
                return
            for owner, name, value in settings(node):
                given = lower(value) if value is not None else VARYING
                place = position(node)
                fact = AttributeFact(
                    name,
                    Setting.EXTERNAL,
                    place,
                    given,
                    scope=self.function,
                    conditions=conditions(under),
                )
                self.sets.append((owner, fact))

    def _bind(
        self,
        name: str,
        source: Source,
        node: ast.AST,
        under: Under,
        target: str = "",
        value: Expression | None = None,
    ) -> None:
        self.bindings.append(
            Binding(name, source, position(node), target, value, conditions(under))
        )

    def _import(self, node: ast.Import, under: Under) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            self._bind(name, Source.IMPORT, alias, under, target)
            if not alias.asname and "." in alias.name:
                # `import a.b` also loads the submodule; linking must know that it is asked for.
                self._bind(alias.name, Source.IMPORT, alias, under, alias.name)

    def _import_from(self, node: ast.ImportFrom, under: Under) -> None:
        module = self.place.absolute(node.module, node.level)
        for alias in node.names:
            target = module if alias.name == "*" else f"{module}.{alias.name}".lstrip(".")
            self._bind(alias.asname or alias.name, Source.IMPORT, alias, under, target)

    def _class(self, node: ast.ClassDef, under: Under) -> None:
        qualname = f"{self.prefix}{node.name}"
        inner = _Scope(
            self.place, self.ends, f"{qualname}.", self.enclosing, self.function, is_class=True
        )
        inner.collect(node.body)
        inner.descend()
        self.classes.append(
            ClassFacts(
                name=node.name,
                qualname=qualname,
                position=header_position(node),
                lines=(first_line(node), last_line(node, self.ends)),
                bases=tuple(lower(base) for base in node.bases),
                keywords=tuple((k.arg or "**", lower(k.value)) for k in node.keywords),
                decorators=tuple(lower(d) for d in node.decorator_list),
                attributes=tuple(attributes(node)),
                methods=tuple(inner.functions),
                scopes=self.enclosing,
                base_positions=tuple(position(base) for base in node.bases),
                body=tuple(inner.bindings),
                outer=tuple(self.bindings) if self.is_class else (),
                conditions=conditions(under),
            )
        )
        self.classes.extend(inner.classes)
        self.externals.extend(inner.externals)

    def _function(self, node: Definition, under: Under) -> None:
        qualname = f"{self.prefix}{node.name}"
        self.functions.append(
            function_facts(node, qualname, self.ends, under, decorates=not self.is_class)
        )
        if node.lineno in self.ends:
            return
        inner = _Scope(self.place, self.ends, f"{qualname}.<locals>.", function=qualname)
        inner.enter(node)
        inner.enclosing = (*self.enclosing, tuple(inner.bindings))
        inner.descend()
        self.classes.extend(inner.classes)
        self.externals.extend(inner.externals)
