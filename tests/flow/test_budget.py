"""What a question may take does not hang on the questions before it."""

from pathlib import Path

import pytest

from dcplint.flow.trace import State
from tests.flow.laboratory import Laboratory

_LINKS = 6
_PROGRAM = (
    "def made(choose):\n    return CommonAttentionMetadata([4])\n\n\n"
    + "".join(
        f"def f{n}(m, choose):\n    if choose():\n        m = m.replace(num_reqs={n})\n"
        f"    g{n} = m\n    return f{n + 1}(g{n}, choose)\n\n\n"
        for n in range(_LINKS)
    )
    + f"def f{_LINKS}(m, choose):\n    Builder().build(m)\n\n\n"
    "def main(choose):\n    f0(made(choose), choose)\n"
)


_BACK = "        f0(m, choose)\n"  # every function calls the first again
_ROUNDS = _PROGRAM.replace("    if choose():\n", f"    if choose():\n{_BACK}")


def _answers(directory: Path, *asked: str, program: str = _PROGRAM) -> list[set[State]]:
    """What `m` is where each function returns or builds, asked in this order."""
    flow = Laboratory.of(directory, program).context().fields
    found = []
    for name in asked:
        (function,) = flow.universe.named(name)
        outcomes = flow.tracer.before(function, function.node.body[-1], ("m", "dcp_local_seq_lens"))
        found.append({outcome.state for outcome in outcomes})
    return found


def test_who_asks_second_gets_what_he_would_get_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, before = f"f{_LINKS}", f"f{_LINKS - 1}"
    seen = set()
    for steps in range(1, 90, 3):
        monkeypatch.setattr("dcplint.flow.budget._STEPS", steps)
        (alone,) = _answers(tmp_path / f"{steps}a", last)
        assert _answers(tmp_path / f"{steps}b", before, last)[-1] == alone
        assert _answers(tmp_path / f"{steps}c", last, before, last)[-1] == alone
        seen.add(frozenset(alone))
    assert seen == {frozenset({State.NONE}), frozenset({State.UNKNOWN})}


@pytest.mark.parametrize("order", [("f5", "f2"), ("f6", "f3"), ("f4", "f6")])
def test_in_a_circle_it_does_not_matter_where_the_first_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]
) -> None:
    seen = set()
    for walks in range(26, 60, 6):
        monkeypatch.setattr("dcplint.flow.budget._WALKS", walks)
        (alone,) = _answers(tmp_path / f"{walks}a", order[1], program=_ROUNDS)
        assert _answers(tmp_path / f"{walks}b", *order, program=_ROUNDS)[-1] == alone
        seen.add(frozenset(alone))
    assert len(seen) > 1
