"""What rules ask the program: classes by role, methods, what accessors return, places."""

from pathlib import Path

import pytest

from dcplint.source.location import Tree as Place
from tests.program.tree import Tree, tree

HEAD = (
    "from engine.base import Backend, Impl, ImplBase\nclass C(Impl):\n    def forward(self): ...\n"
)
ACCESSORS = {
    "a class of the module": ("        return C\n", "C"),
    "a local import": ("        from plugin import C as X\n        return X\n", "C"),
    "a local module": ("        import plugin\n        return plugin.C\n", "C"),
    "a local alias": ("        x = C\n        return x\n", "C"),
    "the same on every path": ("        if x:\n            return C\n        return C\n", "C"),
    "another class's": ("        return Nested.Inner\n", "Nested.Inner"),
    "either of two": ("        if x:\n            return C\n        return ImplBase\n", None),
    "nothing on some path": ("        if x:\n            return C\n", None),
    "a call": ("        return make()\n", None),
    "a raise": ("        raise NotImplementedError\n", None),
    "no class": ("        return 1\n", None),
    "a parameter": ("        return x\n", None),
}


@pytest.mark.parametrize("case", ACCESSORS)
def test_what_an_accessor_returns(case: str, tmp_path: Path) -> None:
    body, name = ACCESSORS[case]
    made = tree(
        tmp_path,
        f"{HEAD}class Nested:\n    class Inner(Impl): ...\n"
        f"class B(Backend):\n    @staticmethod\n    def get_impl_cls(x=None):\n{body}"
        "class Heir(B): ...\n",
    )
    for backend in ("B", "Heir"):
        found = made.program.result(made.find(backend), "get_impl_cls")
        assert (found.facts.qualname if found else None) == name


def test_the_last_definition_of_an_accessor_counts(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        f"{HEAD}class B(Backend):\n    def get_impl_cls(): return ImplBase\n"
        "    def get_impl_cls(): return C\n",
    )
    assert made.program.result(made.find("B"), "get_impl_cls") is made.find("C")


@pytest.fixture
def made(tmp_path: Path) -> Tree:
    return tree(
        tmp_path,
        HEAD
        + "import nowhere\n"
        + "class D(C):\n    def helper(self):\n        '''text'''\n"
        + "class E(nowhere.X, C): ...\nclass F(D):\n    é = 1; flag = False\n",
    )


def test_classes_by_role_in_order(made: Tree) -> None:
    assert [s.facts.name for s in made.program.classes("impl")] == [
        "ImplBase", "Impl", "C", "D", "E", "F",
    ]  # fmt: skip
    assert [s.facts.name for s in made.program.classes("backend")] == ["Backend"]
    assert made.program.classes("nothing") == ()


def test_a_class_without_order_still_has_its_role(tmp_path: Path) -> None:
    made = tree(tmp_path, HEAD + "class X(C, Impl): ...\nclass Y(Impl, C): ...\n")
    assert made.program.mro(made.find("Y")).problem
    assert made.program.roles(made.find("Y")) == {"impl"}


def test_engine_bases(made: Tree) -> None:
    assert made.program.is_engine_base(made.find("Impl"))
    assert not made.program.is_engine_base(made.find("C"))


def test_methods(made: Tree) -> None:
    method = made.program.method(made.find("F"), "forward")
    assert method is not None and method.owner is made.find("C")
    assert made.program.method(made.find("F"), "missing") is None
    assert made.program.method(made.find("E"), "forward") is None, "behind an unknown base"


def test_the_body_of_a_method_is_read_when_asked_for(made: Tree) -> None:
    method = made.program.method(made.find("D"), "helper")
    assert method is not None
    node = made.program.function(method.owner.module, method.facts)
    assert node is not None and node.body[0].lineno == node.lineno + 1
    assert made.program.function(method.owner.module, method.facts) is node, "once"


def test_places_are_counted_in_characters(made: Tree) -> None:
    place = made.resolve("F").place
    assert place is not None
    location = made.program.location(place.module, place.fact.position)
    assert (location.path, location.column, location.tree) == ("plugin.py", 12, Place.PROJECT)
    header = made.program.location_of(made.find("F"))
    assert (header.line, header.column) == (location.line - 1, 1)


def test_reads(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        "def a(x):\n    return x.flag\ndef b(x):\n    return x.f().other\n",
        {"more.py": "import plugin\nprint(plugin.flag)\n"},
    )
    found = [(r.module.facts.path, r.fact.scope) for r in made.program.reads("flag")]
    assert sorted(found) == [("more.py", ""), ("plugin.py", "a")]
    assert [r.fact.accessor for r in made.program.reads("other")] == ["f"]


def test_files_that_break_are_told_once_and_the_rest_goes_on(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        HEAD,
        {"bad.py": "from engine.base import Impl\nclass X(Impl:\n", "use.py": "from bad import X\n"
         "class Y(X): ...\n"},
    )  # fmt: skip
    assert [b.path for b in made.program.modules.broken] == ["bad.py"]
    assert made.resolve("C").known
