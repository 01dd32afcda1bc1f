import pytest

from tests.run.tree import Command


@pytest.fixture
def dcplint(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
