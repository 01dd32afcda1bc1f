"""Which methods a class leaves abstract, against `__abstractmethods__`."""

import inspect
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.program.tree import sections, tree

HEAD = """\
import abc
import collections.abc
import enum
import typing
from abc import ABC, ABCMeta, abstractmethod
from engine.base import Impl, ImplBase
"""
CASES = sections("abstractness.txt")


@pytest.mark.parametrize("case", CASES)
def test_as_python(case: str, tmp_path: Path) -> None:
    # `Z` keeps the file among those that are parsed, whatever `C` derives from.
    made = tree(tmp_path, f"{HEAD}{CASES[case]}class Z(ImplBase): ...\n")
    with made.run() as plugin:
        real = getattr(plugin.C, "__abstractmethods__", frozenset())
        assert inspect.isabstract(plugin.C) is bool(real)
    assert made.program.abstract_methods(made.find("C")) == real


@st.composite
def modules(draw: st.DrawFn) -> str:
    text = ""
    for n in range(draw(st.integers(1, 7))):
        parents = draw(st.lists(st.integers(0, n - 1), max_size=3, unique=True)) if n else []
        bases = [f"K{p}" for p in sorted(parents, reverse=True)]
        bases += draw(st.sampled_from([[], ["ABC"], ["Impl"]])) if not parents else []
        body = draw(st.lists(st.tuples(st.sampled_from("xyf"), st.sampled_from("amv")), max_size=3))
        text += f"class K{n}({', '.join(bases)}):\n    pass\n"
        for name, kind in body:
            name = "forward" if name == "f" else name
            text += "    @abstractmethod\n" if kind == "a" else ""
            text += f"    {name} = 1\n" if kind == "v" else f"    def {name}(self): ...\n"
    return text


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=modules())
def test_generated_classes_as_python(text: str, tmp_path: Path) -> None:
    made = tree(tmp_path, f"{HEAD}{text}class Z(ImplBase): ...\n")
    try:
        with made.run() as plugin:
            real = {
                name: getattr(cls, "__abstractmethods__", frozenset())
                for name, cls in vars(plugin).items()
                if name.startswith("K")
            }
    except TypeError:
        return  # bases without an order
    assert {name: made.program.abstract_methods(made.find(name)) for name in real} == real


def test_below_an_unknown_base_nobody_knows(tmp_path: Path) -> None:
    made = tree(tmp_path, HEAD + "import nowhere\nclass C(nowhere.X, Impl): ...\n")
    assert made.program.abstract_methods(made.find("C")) is None
