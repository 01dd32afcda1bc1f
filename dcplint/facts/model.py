"""Facts about one module: names it binds, classes it defines, where they say what.

Everything here is a frozen value of builtins, so that a module's facts can be cached by the
content of its file.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

Position = tuple[int, int, int, int]
"""line, column, end line, end column: 1-based lines, 0-based UTF-8 columns, as `ast` counts."""


class Source(enum.Enum):
    """How a name comes to be bound."""

    IMPORT = "import"
    ASSIGN = "assign"
    CLASS = "class"
    FUNCTION = "function"
    PARAMETER = "parameter"


@dataclass(frozen=True, slots=True)
class Expression:
    """The part of an expression that linking can use.

    kind: `name` (dotted, in `text`), `absolute` (the same, not looked up in the module),
    `literal` (`value`), `call` (of the dotted `text`; with `arguments` where it is `cast` or
    `type`, and with what bounds it where it is `TypeVar`), `subscript` (of the dotted `text`),
    `choice` (one of `options`), `default` (the first of `options` that exists), `local` (rests on a
    variable of a function), `other`. `text` of `other` is the source, shortened, for messages.
    """

    kind: str
    text: str = ""
    value: object = None
    arguments: tuple[Expression, ...] = ()
    options: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """A test that holds where the fact stands. `text` is its source, shortened.

    `guarded` is the body of a `try` that survives a failing import; it runs unconditionally.
    """

    text: str
    negated: bool = False
    kind: str = "test"  # test | type-checking | guarded | import-error | handler | loop


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding of a name in a scope. For imports `target` is the dotted absolute name.

    `from target import *` is a binding of the name `*`.
    """

    name: str
    source: Source
    position: Position
    target: str = ""
    value: Expression | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def last_part(self) -> str:
        """The last part of the name that it stands for."""
        text = self.value.text if self.value is not None else self.target
        return text.rpartition(".")[2]


class Setting(enum.Enum):
    """By what means an attribute gets a value."""

    CLASS_BODY = "class body"
    ANNOTATION = "annotation"  # declared, not bound
    INSTANCE = "instance"  # self.name = … in a method
    PROPERTY = "property"
    METHOD = "method"
    EXTERNAL = "external"  # Class.name = … or setattr(Class, "name", …) outside the class
    DECORATOR = "decorator"  # set by a class decorator or a base's __init_subclass__
    DELETED = "deleted"


COMPUTED = "*"


@dataclass(frozen=True, slots=True)
class AttributeFact:
    """One place that gives (or takes) an attribute. `scope` is the method it stands in, if any.

    name: COMPUTED where only running the code would tell (`setattr(self, name, …)`).
    """

    name: str
    setting: Setting
    position: Position
    value: Expression
    annotation: str = ""
    scope: str = ""
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A function or method: where it is, how it is decorated, which names its parameters have.

    lines: first (decorators included) and last line of its source. sets: attributes it sets on
    its first parameter, as a class decorator does on the class.
    """

    name: str
    qualname: str
    position: Position
    lines: tuple[int, int]
    decorators: tuple[Expression, ...] = ()
    parameters: tuple[str, ...] = ()
    sets: tuple[AttributeFact, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """A class: header, methods and the attributes that its own source speaks of.

    qualname: dotted name inside the module, with `<locals>` as Python writes it.
    scopes: bindings of the functions that enclose it, innermost last. body: names that its own
    body binds, for what the body evaluates. outer: those of the class body it stands in directly,
    for what its header evaluates.
    base_positions: where each base is written.
    """

    name: str
    qualname: str
    position: Position
    lines: tuple[int, int]
    bases: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()
    decorators: tuple[Expression, ...] = ()
    attributes: tuple[AttributeFact, ...] = ()
    methods: tuple[FunctionFacts, ...] = ()
    scopes: tuple[tuple[Binding, ...], ...] = ()
    base_positions: tuple[Position, ...] = ()
    body: tuple[Binding, ...] = ()
    outer: tuple[Binding, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class ExternalFact:
    """An attribute set on a class from outside its body.

    owner: dotted name of the class, as seen from inside the functions `scopes`.
    """

    owner: str
    fact: AttributeFact
    scopes: tuple[tuple[Binding, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ReadFact:
    """One place that reads an attribute whose name was asked for.

    receiver: source of what it is read from. accessor: the method whose result that is, if it is
    one (`get_impl_cls`). called: whether the value read is called at once. scope: qualified name
    of the enclosing function or class, empty at module level.
    """

    name: str
    receiver: str
    accessor: str
    called: bool
    scope: str
    position: Position


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What linking needs to know of one module.

    path: relative to its root, with `/`. name: dotted. exports: `__all__` where that is plain to
    see, else None. is_open: it may bind names that its source does not show.
    """

    path: str
    name: str
    is_package: bool
    bindings: tuple[Binding, ...]
    exports: tuple[str, ...] | None
    classes: tuple[ClassFacts, ...]
    functions: tuple[FunctionFacts, ...]
    externals: tuple[ExternalFact, ...] = ()
    reads: tuple[ReadFact, ...] = ()
    is_open: bool = False
