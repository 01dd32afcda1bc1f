"""The lookup order, against Python's own on generated hierarchies."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dcplint.program.mro import Inconsistent, Orders
from tests.program.tree import Tree, tree

Bases = Mapping[int, Sequence[int]]


@st.composite
def hierarchies(draw: st.DrawFn) -> Bases:
    """Classes 0…n; each derives from earlier ones, in an order that may be impossible."""
    count = draw(st.integers(1, 12))
    return {
        node: draw(st.lists(st.integers(0, node - 1), max_size=4)) if node else []
        for node in range(count)
    }


def by_python(bases: Bases) -> dict[int, list[int] | None]:
    """`__mro__` of each class, without `object`; None where Python refuses to make it."""
    made: dict[int, type] = {}
    found: dict[int, list[int] | None] = {}
    for node, parents in bases.items():
        with suppress(TypeError, KeyError):
            made[node] = type(str(node), tuple(made[p] for p in parents), {})
    for node in bases:
        order = made[node].__mro__[:-1] if node in made else None
        found[node] = [int(c.__name__) for c in order] if order is not None else None
    return found


def by_us(bases: Bases) -> dict[int, list[int] | None]:
    orders: Orders[int] = Orders(lambda node: bases[node])
    found: dict[int, list[int] | None] = {}
    for node in reversed(list(bases)):  # from below, so that bases are made on the way
        found[node] = None
        with suppress(Inconsistent):
            found[node] = list(orders.of(node))
    return found


@settings(max_examples=200)
@given(hierarchies())
def test_orders_are_those_of_python(bases: Bases) -> None:
    assert by_us(bases) == by_python(bases)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(bases=hierarchies())
def test_programs_are_ordered_as_python_orders_them(bases: Bases, tmp_path: Path) -> None:
    real = by_python(bases)
    text = "".join(
        f"class K{n}({', '.join(f'K{p}' for p in parents) or 'ImplBase'}): ...\n"
        for n, parents in bases.items()
    )
    made = tree(tmp_path, f"from engine.base import ImplBase\n{text}")
    for node, order in real.items():
        linear = made.program.mro(made.find(f"K{node}"))
        if order is None:
            assert linear.problem
        else:
            assert [f"K{n}" for n in order] == [str(c) for c in linear.classes][:-1]


@settings(max_examples=100)
@given(st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 6), max_size=3), max_size=7))
def test_circles_are_refused_and_end(bases: dict[int, list[int]]) -> None:
    full = {node: bases.get(node, []) for node in range(7)}
    for node, order in by_us(full).items():
        if order is not None:
            assert order[0] == node and len(set(order)) == len(order)
        if node in full[node]:
            assert order is None


PROBLEMS = {
    "itself": ("class A(A): ...\n", "A"),
    "a circle": ("class A(B): ...\nclass B(A, ImplBase): ...\n", "B"),
    "below a circle": ("class A(B): ...\nclass B(A): ...\nclass C(A, ImplBase): ...\n", "C"),
    "no order": (
        "class A(ImplBase): ...\nclass B(ImplBase): ...\nclass X(A, B): ...\n"
        "class Y(B, A): ...\nclass C(X, Y): ...\n",
        "C",
    ),
    "a base twice": ("class A(ImplBase): ...\nclass C(A, A): ...\n", "C"),
    "base before heir": ("class A(ImplBase): ...\nclass C(ImplBase, A): ...\n", "C"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_an_impossible_order_is_a_problem_not_a_crash(case: str, tmp_path: Path) -> None:
    text, name = PROBLEMS[case]
    made = tree(tmp_path, f"from engine.base import ImplBase\n{text}class Z(ImplBase): ...\n")
    symbol = made.find(name)
    order = made.program.mro(symbol)
    if case == "itself":
        assert order.obstacle() is not None or order.problem
    else:
        assert order.problem
        assert order.problem in made.resolve(name).reason
    assert made.program.abstract_methods(symbol) is None
    assert made.resolve("Z").known


def test_bases_that_hold_no_attributes_are_left_out(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        "from typing import Generic, TypeVar\nfrom engine.base import ImplBase\n"
        "T = TypeVar('T')\nclass C(ImplBase, Generic[T], object): ...\n",
    )
    assert made.mro("C") == ["plugin.C", "engine.base.ImplBase", "abc.ABC"]


def test_neutral_and_other_bases(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        "import torch, threading, nowhere\nfrom engine.base import ImplBase\n"
        "class A(torch.nn.Module, ImplBase): ...\nclass B(threading.Thread, ImplBase): ...\n"
        "class C(nowhere.X, ImplBase): ...\nclass D(Exception, ImplBase): ...\n",
    )
    neutral = {name: made.program.mro(made.find(name)).obstacle() is None for name in "ABCD"}
    assert neutral == {"A": True, "B": True, "C": False, "D": True}
    assert made.resolve("A").value is True


# Size


def big(tmp_path: Path, text: str) -> Tree:
    return tree(tmp_path, f"from engine.base import ImplBase\n{text}")


def test_ten_thousand_classes_side_by_side(tmp_path: Path) -> None:
    count = 10_000  # as many as vLLM has, twice over
    text = "class K0(ImplBase): ...\n" + "".join(
        f"class K{n}(K{n // 10}): ...\n" for n in range(1, count)
    )
    made = big(tmp_path, text)
    started = time.process_time()
    symbols = made.program.classes("impl")
    values = {made.program.resolve(symbol, "flag").value for symbol in symbols}
    assert len(symbols) == count + 2 and values == {True}
    assert time.process_time() - started < 10


def test_a_chain_deeper_than_the_stack(tmp_path: Path) -> None:
    text = "class K0(ImplBase): ...\n" + "".join(
        f"class K{n}(K{n - 1}): ...\n" for n in range(1, 3000)
    )
    made = big(tmp_path, text)
    assert made.resolve("K900").value is True
    assert "more than" in made.resolve("K2999").reason


def test_a_ladder_of_diamonds_is_not_exponential() -> None:
    bases: dict[int, list[int]] = {0: []}
    for step in range(200):
        top = 3 * step
        bases |= {top + 1: [top], top + 2: [top], top + 3: [top + 1, top + 2]}
    orders: Orders[int] = Orders(lambda node: bases[node])
    started = time.process_time()
    assert len(orders.of(600)) == 601
    assert time.process_time() - started < 5


def test_what_derives_from_the_impossible_is_settled_once() -> None:
    asked: list[int] = []

    def bases(node: int) -> list[int]:
        asked.append(node)
        return [node - 1] if node else [0]

    orders: Orders[int] = Orders(bases)
    for node in range(900, -1, -1):
        with pytest.raises(Inconsistent):
            orders.of(node)
    assert len(asked) < 4_000
