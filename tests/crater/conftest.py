from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crater.releases import OutOfReach, fetch_all


@pytest.fixture(scope="session")
def fetched() -> dict[str, Path | OutOfReach]:
    return fetch_all()


@pytest.fixture(scope="session")
def tree(fetched: dict[str, Path | OutOfReach]) -> Callable[[str], Path]:
    """The folder of a release (`vllm-0.29.0`)."""

    def find(name: str) -> Path:
        found = fetched[name]
        if isinstance(found, OutOfReach):
            pytest.skip(str(found))
        return found

    return find
