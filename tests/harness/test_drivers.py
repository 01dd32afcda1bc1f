"""Drivers of one's own: ten lines, found by configuration or by entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcplint.cli.main import main
from dcplint.harness import targets

# Backends of this engine are made by factories, which no other driver knows.
ENGINE = """
from dcplint.harness.control import GQABackend


class Factory:
    @staticmethod
    def make():
        return GQABackend
"""
DRIVER = """
from dcplint.harness.driver import ContractDriver


class FactoryDriver(ContractDriver):
    def detect(self, target):
        return hasattr(target, "make")

    def claims(self, target):
        return super().claims(target.make())

    def make(self, target, geometry, placement):
        return super().make(target.make(), geometry, placement)

    def parts(self, target):
        return (target, *super().parts(target.make()))
"""
ENTRY = "[dcplint.drivers]\nfactories = factory_driver:FactoryDriver\n"
METADATA = "Metadata-Version: 2.1\nName: factory-driver\nVersion: 1.0\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "factory_engine.py").write_text(ENGINE)
    (tmp_path / "factory_driver.py").write_text(DRIVER)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    targets.configure(())
    for name in [n for n in sys.modules if "factory_" in n]:
        del sys.modules[name]


def test_without_one_nothing_runs_it(project: Path) -> None:
    assert targets.backends_in(project / "factory_engine.py") == ({}, [])


def test_by_configuration(project: Path) -> None:
    targets.configure([f"{project}/factory_driver.py:FactoryDriver"])
    found, said = targets.backends_in(project / "factory_engine.py")
    assert [name.rpartition(":")[2] for name in found] == ["Factory"]
    assert said == []


def test_what_one_raises_is_told(project: Path) -> None:
    """Also what looks as if nobody runs it: a KeyError is a LookupError."""
    broken = DRIVER.replace('return hasattr(target, "make")', 'return {}["make"]')
    (project / "factory_driver.py").write_text(broken)
    targets.configure([f"{project}/factory_driver.py:FactoryDriver"])
    found, said = targets.backends_in(project / "factory_engine.py")
    assert (found, said) == ({}, ["`Factory` cannot name what it runs: KeyError: 'make'"])


def test_by_entry_point(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = project / "factory_driver-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(METADATA)
    (installed / "entry_points.txt").write_text(ENTRY)
    monkeypatch.syspath_prepend(project)
    found, _ = targets.backends_in(project / "factory_engine.py")
    assert [name.rpartition(":")[2] for name in found] == ["Factory"]


@pytest.mark.slow
def test_the_command_asks_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "dcplint.toml").write_text(
        '[harness]\ndrivers = ["factory_driver.py:FactoryDriver"]\n'
    )
    target = str(project / "factory_engine.py:Factory")
    with pytest.raises(SystemExit) as stopped:
        main(["confirm", "-q", "--backend", target, "--probe", "single-rank"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.split() == ["single-rank", "interpreted", "right"]
