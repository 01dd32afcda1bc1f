"""A pack alone answers as the engine's source does."""

from dataclasses import replace
from pathlib import Path

import pytest

from dcplint.contracts.model import Moved, Override, Releases
from dcplint.program.build import build_program
from dcplint.program.engine import find_engine
from dcplint.program.program import Program
from dcplint.source.location import Tree as Place
from tests.program.tree import ALWAYS, ENGINE, HERE, PACK, index_of, write

PLUGIN = {
    "plugin.py": """\
import engine.base
from engine import base as b
from engine.base import Backend, Impl
from engine.gone import Old
from engine.alias import Impl as Same


class Silent(Impl):
    def forward(self): ...


class Partial(b.Impl): ...


class Stated(engine.base.Impl):
    flag = False

    def forward(self): ...


class Heir(Stated): ...


class Aliased(Same):
    def forward(self): ...


class Own(Backend):
    @staticmethod
    def get_impl_cls():
        from plugin import Silent

        return Silent


class Lost(Old): ...
"""
}
SOURCE = {**ENGINE, "engine/alias.py": "from engine.base import Impl\n"}
ALIASED = replace(PACK.classes[1], aliases=("engine.alias.Impl",))
ALIASED_PACK = replace(PACK, classes=(PACK.classes[0], ALIASED, PACK.classes[2]))


def program(root: Path, engine_path: Path | None, pack: object = ALIASED_PACK) -> Program:
    index = index_of(root)
    engine = find_engine(index, pack, None, engine_path)
    assert engine is not None
    return build_program(index, engine)


def view(made: Program) -> dict[str, object]:
    symbols = {s.facts.name: s for m in made.checked for s in m.classes}
    return {
        name: (
            made.roles(symbol),
            [getattr(e, "dotted", None) or e.base for e in made.mro(symbol).entries],
            made.abstract_methods(symbol),
            [
                (r.kind, r.value, r.place and r.place.owner.dotted)
                for r in (made.resolve(symbol, "flag"), made.resolve(symbol, "other"))
            ],
            str(made.result(symbol, "get_impl_cls")),
        )
        for name, symbol in symbols.items()
        if name != "Lost"
    }


def test_the_pack_answers_as_the_source_does(tmp_path: Path) -> None:
    plugin = write(tmp_path / "plugin", PLUGIN)
    source = write(tmp_path / "engine", SOURCE)
    by_pack, by_source = view(program(plugin, None)), view(program(plugin, source))
    assert by_pack.keys() == {"Silent", "Partial", "Stated", "Heir", "Aliased", "Own"}
    for name, said in by_source.items():
        roles, mro, *rest = said
        # The pack leaves out bases outside the engine's own package.
        assert by_pack[name] == (roles, [entry for entry in mro if entry != "abc.ABC"], *rest)


def test_evidence_points_into_the_pack(tmp_path: Path) -> None:
    made = program(write(tmp_path, PLUGIN), None)
    (silent,) = (s for m in made.checked for s in m.classes if s.facts.name == "Silent")
    place = made.resolve(silent, "flag").place
    assert place is not None
    location = made.location(place.module, place.fact.position)
    assert (location.tree, location.path) == (Place.PACK, "rules/engine.yaml")


def test_what_the_pack_does_not_describe_is_unknown_not_gone(tmp_path: Path) -> None:
    made = program(write(tmp_path, PLUGIN), None)
    (lost,) = (s for m in made.checked for s in m.classes if s.facts.name == "Lost")
    obstacle = made.mro(lost).obstacle()
    assert obstacle is not None and "not described by the pack" in obstacle.reason
    ((found, _),) = made.absent_bases(lost)
    assert found.dotted == "engine.gone.Old"


def test_a_default_of_another_release(tmp_path: Path) -> None:
    first = replace(PACK.capabilities[0].defaults[0], value=False)
    flipped = replace(PACK.capabilities[0], defaults=(first,))
    pack = replace(ALIASED_PACK, capabilities=(flipped, PACK.capabilities[1]))
    made = program(write(tmp_path, PLUGIN), None, pack)
    values = {s.facts.name: made.resolve(s, "flag").value for m in made.checked for s in m.classes}
    assert (values["Silent"], values["Stated"]) == (False, False)


def test_an_override_of_another_engine_class(tmp_path: Path) -> None:
    override = Override("engine.base.Impl", False, ALWAYS, HERE)
    pack = replace(
        ALIASED_PACK,
        capabilities=(replace(PACK.capabilities[0], overrides=(override,)), PACK.capabilities[1]),
    )
    made = program(write(tmp_path, PLUGIN), None, pack)
    (silent,) = (s for m in made.checked for s in m.classes if s.facts.name == "Silent")
    resolution = made.resolve(silent, "flag")
    assert (resolution.value, resolution.place and str(resolution.place.owner)) == (False, "Impl")


def test_a_namespace_directory_of_the_same_name_hides_nothing(tmp_path: Path) -> None:
    """A folder without `__init__.py` called like the engine is a portion of a namespace."""
    plugin = write(tmp_path / "plugin", {**PLUGIN, "engine/patches/mine.py": "NO = False\n"})
    by_pack = view(program(plugin, None))
    source = write(tmp_path / "engine", SOURCE)
    by_source = view(program(plugin, source))
    for said in (by_pack, by_source):
        assert said["Silent"][0] == {"impl"}


def test_a_moved_name_is_known_to_be_missing(tmp_path: Path) -> None:
    moved = Moved("engine.gone.Old", "engine.base.Impl", Releases(()), HERE)
    made = program(write(tmp_path, PLUGIN), None, replace(ALIASED_PACK, moved=(moved,)))
    assert made.contract.missing("engine.gone.Old") == (moved, "engine.base.Impl")


@pytest.mark.parametrize("name", ["engine", "engine.base"])
def test_packages_above_described_modules_exist(name: str, tmp_path: Path) -> None:
    made = program(write(tmp_path, PLUGIN), None)
    assert made.modules.find(name) is not None
