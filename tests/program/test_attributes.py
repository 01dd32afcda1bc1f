"""What a class says of an attribute, against what Python answers."""

from pathlib import Path

import pytest

from dcplint.program.attributes import Kind
from tests.program.tree import ENGINE, Tree, sections, tree, write

HEAD = "from engine.base import Impl, ImplBase\n"
FORWARD = "    def forward(self): ...\n"


def make(tmp_path: Path, text: str, files: dict[str, str] | None = None) -> Tree:
    return tree(tmp_path, HEAD + text, files)


# Python's answer is what the program must give: for the class `C`, and for an instance of it.
KNOWN = sections("attributes_known.txt")


@pytest.mark.parametrize("case", KNOWN)
def test_known_values_are_those_of_python(case: str, tmp_path: Path) -> None:
    made = make(tmp_path, KNOWN[case])
    with made.run() as module:
        cls = module.C
        on_class, on_instance = cls.flag, cls().flag
        name = cls.__qualname__
    candidates = [s for m in made.program.checked for s in m.classes if s.facts.qualname == name]
    symbol = candidates[-1]
    resolution = made.program.resolve(symbol, "flag")
    assert resolution.known, resolution.reason
    assert resolution.value == on_instance
    plain = made.program.attributes.resolve_on_class(symbol, "flag")
    if not hasattr(on_class, "__get__"):
        assert plain.known and plain.value == on_class


# Only running the program would tell. The title ends in a part of the reason that is given.
UNKNOWN = sections("attributes_unknown.txt")


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_only_running_tells_is_unknown(case: str, tmp_path: Path) -> None:
    text, reason = UNKNOWN[case], case.partition(": ")[2]
    made = make(tmp_path, text)
    name = "f.<locals>.C" if "return C\n" in text and "def f" in text else "C"
    resolution = made.resolve(name)
    assert resolution.kind is Kind.UNKNOWN
    assert reason in resolution.reason
    assert resolution.holds() is None


def test_an_unknown_base_behind_the_class_that_decides_does_not_matter(tmp_path: Path) -> None:
    made = make(
        tmp_path,
        "import nowhere\nclass B(ImplBase):\n    flag = False\nclass C(B, nowhere.X): ...\n"
        "class D(nowhere.X, ImplBase):\n    flag = False\n",
    )
    assert (made.resolve("C").kind, made.resolve("C").value) == (Kind.INHERITED, False)
    assert (made.resolve("D").kind, made.resolve("D").value) == (Kind.EXPLICIT, False)


def test_a_constructor_behind_an_unknown_base_may_not_run(tmp_path: Path) -> None:
    made = make(
        tmp_path,
        "import nowhere\nclass B(ImplBase):\n    def __init__(self):\n        self.flag = False\n"
        "class C(nowhere.X, B):\n    flag = True\n",
    )
    assert made.resolve("C").kind is Kind.UNKNOWN
    assert "not known calls on" in made.resolve("C").reason


@pytest.mark.parametrize(
    ("name", "kind", "owner", "walked"),
    [
        ("Own", Kind.EXPLICIT, "Own", ["Own"]),
        ("Heir", Kind.INHERITED, "Own", ["Heir", "Own"]),
        ("Silent", Kind.DEFAULT, "ImplBase", ["Silent", "Impl", "ImplBase"]),
        ("Below", Kind.DEFAULT, "ImplBase", ["Below", "Silent", "Impl", "ImplBase"]),
    ],
)
def test_who_says_it(name: str, kind: Kind, owner: str, walked: list[str], tmp_path: Path) -> None:
    made = make(
        tmp_path,
        "class Own(Impl):\n    flag = False\nclass Heir(Own): ...\n"
        "class Silent(Impl): ...\nclass Below(Silent): ...\n",
    )
    resolution = made.resolve(name)
    assert resolution.place is not None
    assert (resolution.kind, str(resolution.place.owner)) == (kind, owner)
    assert [str(c) for c in resolution.walked] == walked


def test_the_place_is_the_line_that_says_it(tmp_path: Path) -> None:
    made = make(tmp_path, "\n\nclass C(ImplBase):\n    other = 1\n    flag = False\n")
    place = made.resolve("C").place
    assert place is not None
    location = made.program.location(place.module, place.fact.position)
    assert (location.path, location.line, location.column) == ("plugin.py", 6, 5)


def test_an_attribute_nobody_has(tmp_path: Path) -> None:
    resolution = make(tmp_path, "class C(ImplBase): ...\n").resolve("C", "nothing")
    assert resolution.kind is Kind.UNKNOWN and "no class defines" in resolution.reason


def test_a_patch_from_another_module_is_unknown_unless_it_changes_nothing(tmp_path: Path) -> None:
    made = make(
        tmp_path,
        "class C(ImplBase): ...\nclass D(ImplBase): ...\n",
        {"patch.py": "from plugin import C, D\nC.flag = False\nD.flag = True\n"},
    )
    assert "module patch (patch.py:2)" in made.resolve("C").reason
    assert made.resolve("D").value is True


def test_constants_of_other_modules(tmp_path: Path) -> None:
    made = make(
        tmp_path,
        "import pkg.const as k\nfrom pkg import NO\nclass C(ImplBase):\n    flag = NO\n"
        "class D(ImplBase):\n    flag = k.NO\nclass E(ImplBase):\n    flag = k.Flags.NO\n",
        {"pkg/__init__.py": "from .const import *\n",
         "pkg/const.py": "NO = False\nclass Flags:\n    NO = False\n"},
    )  # fmt: skip
    assert [made.resolve(name).value for name in "CDE"] == [False] * 3


def test_values_taken_from_one_another_for_ever(tmp_path: Path) -> None:
    count = 600
    chain = "".join(f"class C{n}:\n    flag = C{n - 1}.flag\n" for n in range(1, count))
    made = make(
        tmp_path,
        f"class C0(ImplBase):\n    flag = False\n{chain}class C(ImplBase):\n    flag = C599.flag\n",
    )
    assert made.resolve("C").kind is Kind.UNKNOWN
    assert made.resolve("C0").value is False


def test_the_engine_is_judged_by_its_own_source(tmp_path: Path) -> None:
    made = Tree(
        write(tmp_path, {**ENGINE, "engine/own.py": HEAD + "class C(Impl):\n    flag = 1\n"})
    )
    assert made.resolve("C").kind is Kind.EXPLICIT
    assert made.resolve("Impl").kind is Kind.DEFAULT
    assert made.resolve("ImplBase").kind is Kind.EXPLICIT
