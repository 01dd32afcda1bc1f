"""From the tree of a module to its facts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dcplint.facts.expressions import dotted_name, lower, shorten
from dcplint.facts.reads import reads_in
from dcplint.facts.model import (
    COMPUTED,
    AttributeFact,
    Binding,
    ClassFacts,
    Condition,
    Expression,
    FunctionFacts,
    ModuleFacts,
    Position,
    Setting,
    Source,
)

Conditions = tuple[Condition, ...]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a module stands: its file, its dotted name, whether it is a package."""

    path: str
    name: str
    is_package: bool

    def absolute(self, target: str | None, level: int) -> str:
        """The absolute name of a relative import's module; `?` in front where it leaves the tree."""
        if level == 0:
            return target or ""
        parts = self.name.split(".") if self.name else []
        up = level - 1 if self.is_package else level
        if up > len(parts):
            return f"?.{target or ''}"
        base = parts[: len(parts) - up] if up else parts
        return ".".join([*base, *([target] if target else [])])


def extract(
    tree: ast.Module, place: Place, ends: dict[int, int], words: frozenset[str]
) -> ModuleFacts:
    """The facts of a module.

    ends: the real last line of functions whose body is blanked. words: attributes whose reads
    are facts too.
    """
    walker = _Scope(place, ends)
    walker.visit(tree.body, ())
    return ModuleFacts(
        path=place.path,
        name=place.name,
        is_package=place.is_package,
        bindings=tuple(walker.bindings),
        stars=tuple(walker.stars),
        exports=_exports(tree),
        classes=tuple(walker.classes),
        functions=tuple(walker.functions),
        externals=tuple(walker.externals),
        reads=tuple(reads_in(tree, words)),
    )


def local_bindings(
    node: ast.FunctionDef | ast.AsyncFunctionDef, place: Place
) -> tuple[Binding, ...]:
    """The names that a function's own statements bind, its parameters first."""
    scope = _Scope(place, {})
    for name in parameters(node):
        scope._bind(name, Source.PARAMETER, node.args, ())
    for statement, under in statements(node.body, ()):
        scope._statement(statement, under)
    return tuple(scope.bindings)


@dataclass(slots=True)
class _Scope:
    """Collects what the statements of one module or function say."""

    place: Place
    ends: dict[int, int]
    prefix: str = ""
    enclosing: tuple[tuple[Binding, ...], ...] = ()
    function: str = ""
    bindings: list[Binding] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    classes: list[ClassFacts] = field(default_factory=list)
    functions: list[FunctionFacts] = field(default_factory=list)
    externals: list[tuple[str, AttributeFact]] = field(default_factory=list)
    pending: list[tuple[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, Conditions]] = field(
        default_factory=list
    )

    def visit(self, body: Iterable[ast.stmt], conditions: Conditions) -> None:
        """Collect `body`; classes and functions last, when the scope's bindings are complete."""
        for statement, under in statements(body, conditions):
            self._statement(statement, under)
        for node, under in self.pending:
            if isinstance(node, ast.ClassDef):
                self._class(node, under)
            else:
                self._function(node, under)

    def _statement(self, node: ast.stmt, under: Conditions) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node, under)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            self._assign(node, under)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._setattr(node.value, under)
        elif isinstance(node, ast.ClassDef):
            self._bind(node.name, Source.CLASS, node, under)
            self.pending.append((node, under))
        elif isinstance(node, _FUNCTIONS):
            self._bind(node.name, Source.FUNCTION, node, under)
            self.pending.append((node, under))

    def _bind(
        self,
        name: str,
        source: Source,
        node: ast.AST,
        under: Conditions,
        target: str = "",
        value: Expression | None = None,
    ) -> None:
        self.bindings.append(Binding(name, source, position(node), target, value, under))

    def _import(self, node: ast.Import | ast.ImportFrom, under: Conditions) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                target = alias.name if alias.asname else name
                self._bind(name, Source.IMPORT, alias, under, target)
                if not alias.asname and "." in alias.name:
                    # `import a.b` also loads the submodule; linking must know that it is asked for.
                    self._bind(alias.name, Source.IMPORT, alias, under, alias.name)
            return
        module = self.place.absolute(node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                target = f"{module}.{alias.name}"
                self._bind(alias.asname or alias.name, Source.IMPORT, alias, under, target)

    def _assign(self, node: ast.Assign | ast.AnnAssign, under: Conditions) -> None:
        if node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for place, value in pairs(target, node.value):
                if isinstance(place, ast.Name):
                    self._bind(place.id, Source.ASSIGN, node, under, value=lower(value))
                elif isinstance(place, ast.Attribute) and (owner := dotted_name(place.value)):
                    self._external(owner, place.attr, value, node, under)

    def _setattr(self, call: ast.Call, under: Conditions) -> None:
        for owner, name, value in setattr_calls(call):
            self._external(owner, name, value, call, under)

    def _external(
        self, owner: str, name: str, value: ast.expr, node: ast.AST, under: Conditions
    ) -> None:
        fact = AttributeFact(
            name,
            Setting.EXTERNAL,
            position(node),
            lower(value),
            scope=self.function,
            conditions=under,
        )
        self.externals.append((owner, fact))

    def _class(self, node: ast.ClassDef, under: Conditions) -> None:
        qualname = f"{self.prefix}{node.name}"
        inner = _Scope(self.place, self.ends, f"{qualname}.", self.enclosing, self.function)
        inner.visit(node.body, ())
        body = _ClassBody(node, qualname, self.ends)
        self.classes.append(
            ClassFacts(
                name=node.name,
                qualname=qualname,
                position=header_position(node),
                lines=(first_line(node), self._last_line(node)),
                bases=tuple(lower(base) for base in node.bases),
                keywords=tuple((k.arg or "**", lower(k.value)) for k in node.keywords),
                decorators=tuple(lower(d) for d in node.decorator_list),
                attributes=tuple(body.attributes()),
                methods=tuple(inner.functions),
                scopes=self.enclosing,
                base_positions=tuple(position(base) for base in node.bases),
                conditions=under,
            )
        )
        self.classes.extend(inner.classes)
        self.externals.extend(inner.externals)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, under: Conditions) -> None:
        qualname = f"{self.prefix}{node.name}"
        self.functions.append(function_facts(node, qualname, self.ends, under))
        inner = _Scope(self.place, self.ends, f"{qualname}.<locals>.", function=qualname)
        # Classes in the body see the whole scope, so its bindings are collected beforehand.
        inner.enclosing = (*self.enclosing, local_bindings(node, self.place))
        inner.visit(node.body, ())
        self.classes.extend(inner.classes)
        self.externals.extend(inner.externals)

    def _last_line(self, node: ast.ClassDef) -> int:
        last = node.body[-1]
        return max(node.end_lineno or node.lineno, self.ends.get(last.lineno, 0))


@dataclass(frozen=True, slots=True)
class _ClassBody:
    """The attributes that a class's own source speaks of."""

    node: ast.ClassDef
    qualname: str
    ends: dict[int, int]

    def attributes(self) -> Iterator[AttributeFact]:
        for node, under in statements(self.node.body, ()):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from self._targets(target, node.value, node, under)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield self._annotated(node, node.target.id, under)
            elif isinstance(node, ast.Delete):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        nothing = Expression("other")
                        yield AttributeFact(
                            target.id, Setting.DELETED, position(node), nothing, conditions=under
                        )
            elif isinstance(node, _FUNCTIONS):
                yield self._defined(node, under)
                creating = node.name == "__init_subclass__"
                setting = Setting.DECORATOR if creating else Setting.INSTANCE
                yield from _set_on_first_parameter(node, setting)
            elif isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom)):
                yield from _other_names(node, under)

    def _targets(
        self, target: ast.expr, value: ast.expr, node: ast.stmt, under: Conditions
    ) -> Iterator[AttributeFact]:
        for place, right in pairs(target, value):
            if isinstance(place, ast.Name):
                yield AttributeFact(
                    place.id, Setting.CLASS_BODY, position(node), lower(right), conditions=under
                )

    def _annotated(self, node: ast.AnnAssign, name: str, under: Conditions) -> AttributeFact:
        annotation = shorten(node.annotation)
        if node.value is None:
            nothing = Expression("other")
            return AttributeFact(
                name, Setting.ANNOTATION, position(node), nothing, annotation, conditions=under
            )
        value = lower(node.value)
        return AttributeFact(
            name, Setting.CLASS_BODY, position(node), value, annotation, conditions=under
        )

    def _defined(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, under: Conditions
    ) -> AttributeFact:
        decorators = {(dotted_name(d) or "").rpartition(".")[2] for d in node.decorator_list}
        is_property = bool(decorators & {"property", "cached_property", "classproperty"})
        setting = Setting.PROPERTY if is_property else Setting.METHOD
        return AttributeFact(
            node.name, setting, position(node), returned(node), scope=node.name, conditions=under
        )


def _set_on_first_parameter(
    node: ast.FunctionDef | ast.AsyncFunctionDef, setting: Setting
) -> Iterator[AttributeFact]:
    """What a function sets on its first parameter: the instance, the class, the decorated class."""
    names = parameters(node)
    if not names:
        return
    owners = {names[0], *_instances(node)}
    for statement, under in statements(node.body, ()):
        for owner, name, value in settings(statement):
            if owner in owners:
                place = position(statement)
                yield AttributeFact(
                    name, setting, place, lower(value), scope=node.name, conditions=under
                )


def _instances(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """In `__new__`, names that hold the new instance."""
    if node.name != "__new__":
        return
    for statement in ast.walk(node):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Call)
            and isinstance(statement.value.func, ast.Attribute)
            and statement.value.func.attr == "__new__"
        ):
            yield from (t.id for t in statement.targets if isinstance(t, ast.Name))


def _other_names(
    node: ast.ClassDef | ast.Import | ast.ImportFrom, under: Conditions
) -> Iterator[AttributeFact]:
    """Classes and imports in a class body bind attributes too."""
    names = (
        [node.name]
        if isinstance(node, ast.ClassDef)
        else [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    )
    for name in names:
        value = Expression("other", f"{type(node).__name__.lower()} in the class body")
        yield AttributeFact(name, Setting.CLASS_BODY, position(node), value, conditions=under)


def settings(node: ast.stmt) -> Iterator[tuple[str, str, ast.expr]]:
    """(owner, attribute, value) for `owner.attribute = value` and `setattr(owner, …)`."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for place, value in pairs(target, node.value):
                if isinstance(place, ast.Attribute) and (owner := dotted_name(place.value)):
                    yield owner, place.attr, value
    elif isinstance(node, ast.AugAssign):
        target = node.target
        if isinstance(target, ast.Attribute) and (owner := dotted_name(target.value)):
            yield owner, target.attr, ast.BinOp(target, node.op, node.value)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from setattr_calls(node.value)


def setattr_calls(call: ast.Call) -> Iterator[tuple[str, str, ast.expr]]:
    """(owner, attribute, value) of `setattr(owner, "attribute", value)` and its spellings."""
    callee = dotted_name(call.func) or ""
    arguments = list(call.args)
    if callee in ("setattr", "object.__setattr__", "type.__setattr__") and len(arguments) == 3:
        owner = dotted_name(arguments[0])
        name = arguments[1]
        if owner and isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield owner, name.value, arguments[2]
        elif owner:
            yield owner, COMPUTED, arguments[2]


def returned(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Expression:
    """What a function returns, where that is one expression on every path."""
    values = [s.value for s, _ in statements(node.body, ()) if isinstance(s, ast.Return)]
    lowered = {lower(v) if v is not None else Expression("literal") for v in values}
    if len(lowered) == 1:
        return lowered.pop()
    if not lowered:
        return Expression("other", "no return statement")
    return Expression("choice", options=tuple(sorted(lowered, key=repr)))


def statements(
    body: Iterable[ast.stmt], under: Conditions
) -> Iterator[tuple[ast.stmt, Conditions]]:
    """Every statement of one scope with the conditions it stands under, in source order."""
    for node in body:
        yield node, under
        for inner, condition in _blocks(node):
            yield from statements(inner, (*under, condition) if condition else under)


def _blocks(node: ast.stmt) -> Iterator[tuple[list[ast.stmt], Condition | None]]:
    if isinstance(node, ast.If):
        test = _test(node.test)
        yield node.body, test
        yield node.orelse, Condition(test.text, not test.negated, test.kind)
    elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        survives = any(map(_catches_import_error, node.handlers))  # type: ignore[attr-defined]
        yield node.body, Condition("try", kind="guarded") if survives else None  # type: ignore[attr-defined]
        for handler in node.handlers:  # type: ignore[attr-defined]
            caught = shorten(handler.type) if handler.type else "any exception"
            kind = "import-error" if _catches_import_error(handler) else "handler"
            yield handler.body, Condition(caught, kind=kind)
        yield node.orelse, None  # type: ignore[attr-defined]
        yield node.finalbody, None  # type: ignore[attr-defined]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield node.body, None
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield (
            node.body,
            Condition(f"for {shorten(node.target)} in {shorten(node.iter)}", kind="loop"),
        )
        yield node.orelse, None
    elif isinstance(node, ast.While):
        yield node.body, Condition(shorten(node.test), kind="loop")
        yield node.orelse, None
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield case.body, Condition(f"{shorten(node.subject)} matches {shorten(case.pattern)}")


def _test(test: ast.expr) -> Condition:
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    name = (dotted_name(test) or "").rpartition(".")[2]
    return Condition(shorten(test), negated, "type-checking" if name == "TYPE_CHECKING" else "test")


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {(dotted_name(c) or "").rpartition(".")[2] for c in caught}
    broad = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "AttributeError"}
    return bool(names & broad)


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`a, b = x, y` element by element; a target that cannot be paired gets the whole value."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for inner, right in zip(target.elts, value.elts):
                yield from pairs(inner, right)
        else:
            for inner in target.elts:
                place = inner.value if isinstance(inner, ast.Starred) else inner
                yield place, ast.Call(ast.Name("unpacked"), [value], [])
    else:
        yield target, value


def function_facts(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    qualname: str,
    ends: dict[int, int],
    under: Conditions,
) -> FunctionFacts:
    """The facts of a function as far as its header goes."""
    return FunctionFacts(
        name=node.name,
        qualname=qualname,
        position=header_position(node),
        lines=(first_line(node), ends.get(node.lineno, node.end_lineno or node.lineno)),
        decorators=tuple(lower(d) for d in node.decorator_list),
        parameters=parameters(node),
        sets=tuple(_set_on_first_parameter(node, Setting.DECORATOR)),
        conditions=under,
    )


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    """Names of all parameters, in order."""
    spec = node.args
    ordered = [*spec.posonlyargs, *spec.args, *([spec.vararg] if spec.vararg else [])]
    ordered += [*spec.kwonlyargs, *([spec.kwarg] if spec.kwarg else [])]
    return tuple(argument.arg for argument in ordered)


def position(node: ast.AST) -> Position:
    """Where `node` stands, as `ast` counts."""
    line = getattr(node, "lineno", 1)
    column = getattr(node, "col_offset", 0)
    return (
        line,
        column,
        getattr(node, "end_lineno", None) or line,
        getattr(node, "end_col_offset", None) or column,
    )


def header_position(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Position:
    """The span of `class Name` or `def name`: what a finding on it should underline."""
    keyword = {ast.ClassDef: "class ", ast.FunctionDef: "def "}.get(type(node), "async def ")
    end = node.col_offset + len(keyword) + len(node.name.encode())
    return (node.lineno, node.col_offset, node.lineno, end)


def first_line(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line its source starts in, decorators included."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _exports(tree: ast.Module) -> tuple[str, ...] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
        ):
            try:
                names = ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError):
                return None
            if isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names):
                return tuple(names)
    return None
