from pathlib import Path

import pytest

from dcplint import data
from dcplint.data import data_dir


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that dcplint takes for its own package."""
    folder = tmp_path / "dcplint"
    folder.mkdir()
    monkeypatch.setattr(data, "_PACKAGE", folder)
    return folder


def test_here() -> None:
    assert (data_dir("rules") / "vllm.yaml").is_file()


def test_a_wheel_carries_its_data_inside_the_package(package: Path) -> None:
    (package / "_rules").mkdir()
    (package.parent / "rules").mkdir()
    (package.parent / "pyproject.toml").touch()
    assert data_dir("rules") == package / "_rules"


def test_a_checkout_has_it_beside_the_package(package: Path) -> None:
    (package.parent / "rules").mkdir()
    (package.parent / "pyproject.toml").touch()
    assert data_dir("rules") == package.parent / "rules"


def test_a_foreign_folder_in_site_packages_is_not_taken_for_it(package: Path) -> None:
    (package.parent / "rules").mkdir()
    with pytest.raises(FileNotFoundError, match=r"'rules' is missing .*; reinstall dcplint"):
        data_dir("rules")
