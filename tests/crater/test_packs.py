"""Every released engine that a pack knows is as the pack says."""

from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from dcplint.contracts.packs import find_packs
from tests.crater.releases import RELEASES
from tests.run.conftest import dcplint as dcplint
from tests.run.tree import Command

pytestmark = pytest.mark.crater

_PACKS = {pack.distribution: pack for pack in find_packs(()).values()}
_KNOWN = [
    str(release)
    for release in RELEASES
    if release.name in _PACKS and Version(release.version) in _PACKS[release.name].known
]


@pytest.mark.parametrize("name", _KNOWN)
def test_pack_and_release_agree(dcplint: Command, tree: Callable[[str], Path], name: str) -> None:
    dcplint("packs", "check", "--engine-path", tree(name))
    assert dcplint.status == 0, dcplint.out
