import os

import pytest

_STEERING = {"CI", "NO_COLOR", "COLUMNS", "LINES", "TERM"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snapshots", action="store_true", help="write snapshot files instead of comparing"
    )


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on where it runs."""
    for name in list(os.environ):
        if name in _STEERING or name.startswith("GITHUB_"):
            monkeypatch.delenv(name)
