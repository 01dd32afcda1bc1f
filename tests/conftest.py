import os
from importlib.util import find_spec

import pytest

# Before anything imports triton, which reads it once: the kernels of these processes are
# interpreted, whichever folder is collected first.
os.environ.setdefault("TRITON_INTERPRET", "1")

# The harness runs kernels; everything else is tested without torch.
_HARNESS = ["harness", "kernels"]
collect_ignore = [] if find_spec("torch") and find_spec("triton") else _HARNESS

_STEERING = {"CI", "NO_COLOR", "COLUMNS", "LINES", "TERM"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snapshots", action="store_true", help="write snapshot files instead of comparing"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name in _HARNESS:
            item.add_marker("harness")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if collect_ignore:
        terminalreporter.write_line(
            "left out, for want of torch and triton: tests/harness, tests/kernels "
            "(pip install -r tests/requirements-harness.txt)"
        )


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on where it runs, nor gets an answer that another has left in a cache."""
    monkeypatch.setenv("DCPLINT_CACHE_DIR", os.devnull)
    for name in list(os.environ):
        if name in _STEERING or name.startswith("GITHUB_"):
            monkeypatch.delenv(name)
