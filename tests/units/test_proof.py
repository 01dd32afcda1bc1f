"""What the enumeration makes of formulas, right ones and wrong ones."""

import ast

import pytest

from dcplint.units.evaluate import NotArithmetic, arithmetic
from dcplint.units.proof import (
    Fault,
    Formula,
    Point,
    divided_late,
    formula,
    is_cap,
    wrong_owner,
)

RIGHT = {
    "canonical": "seq_lens // (dcp_size * cp_interleave) * cp_interleave + clamp("
    "seq_lens % (dcp_size * cp_interleave) - dcp_rank * cp_interleave, 0, cp_interleave)",
    "torch": "seq_lens // I0 // dcp_size * I0 + torch.clip(seq_lens - seq_lens // I0 // dcp_size"
    " * I0 * dcp_size - dcp_rank * I0, 0, I0)".replace("I0", "cp_kv_cache_interleave_size"),
    "triton": "seq_lens // (CP_SIZE * CP_INTERLEAVE) * CP_INTERLEAVE + tl.minimum(tl.maximum("
    "seq_lens % (CP_SIZE * CP_INTERLEAVE) - CP_RANK * CP_INTERLEAVE, 0), CP_INTERLEAVE)",
}
RIGHT_FOR_ONE = {
    "strict remainder": "seq_len // dcp_world_size + (dcp_rank < seq_len % dcp_world_size)",
    "ceiling": "cdiv(seq_len - dcp_rank, dcp_world_size)",
    "shifted": "(seq_len + dcp_world_size - 1 - dcp_rank) // dcp_world_size",
    "divmod": "divmod(seq_len, dcp_size)[0] + (dcp_rank < divmod(seq_len, dcp_size)[1])",
    "on the device": "(seq_lens[:n].to(torch.int32) // dcp_size + (dcp_rank < seq_lens[:n].to("
    "torch.int32) % dcp_size))",
}
WRONG = {
    "seq_len // dcp_size + (dcp_rank <= (seq_len - 1) % dcp_size)": (
        "L=2, N=2, r=0, I=1: 2, should be 1"
    ),
    "seq_lens // (dcp_size * cp_interleave) * cp_interleave + torch.clamp(seq_lens % (dcp_size * "
    "cp_interleave) - dcp_rank * cp_interleave, max=cp_interleave)": (
        "L=1, N=2, r=1, I=2: -1, should be 0"
    ),
    "seq_len // dcp_size + (dcp_rank < seq_len % dcp_size) * cp_interleave": (
        "L=1, N=2, r=0, I=2: 2, should be 1"
    ),
}
OTHER = [
    "cdiv(max_seq_len, dcp_size * cp_interleave) * cp_interleave",  # a cap
    "tp_rank % dcp_size",
    "num_heads // dcp_size * dcp_rank",
    "seq_len // dcp_size",
    "seq_len * dcp_size + dcp_rank",
    "block_ids // dcp_size + (dcp_rank < block_ids % dcp_size)",  # blocks, not tokens
    "end_len // dcp_size - start_len // dcp_size + dcp_rank",  # two lengths
    "seq_len // dcp_size + kernel(dcp_rank)",
    "token_len // (cp_interleave * dcp_size) * cp_interleave + token_len % cp_interleave",
    "(seq_len // cp_interleave) % dcp_size == dcp_rank",  # the owner
]


def _formula(text: str) -> Formula:
    found = formula(ast.parse(text, mode="eval").body)
    assert found is not None
    return found


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_right_is_right_however_it_is_spelled(text: str) -> None:
    found = _formula(text)
    assert found.is_meant_as_local()
    assert found.takes_interleave
    assert found.counterexample(knows_interleave=True) is None


@pytest.mark.parametrize("text", RIGHT_FOR_ONE.values(), ids=RIGHT_FOR_ONE)
def test_right_for_an_interleave_size_of_one(text: str) -> None:
    found = _formula(text)
    assert found.is_meant_as_local()
    assert found.counterexample(knows_interleave=False) is None
    example = found.counterexample(knows_interleave=True)
    assert example is not None and example.fault is Fault.NO_INTERLEAVE
    assert example.point.interleave > 1


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_wrong_shows_the_smallest_case(text: str) -> None:
    found = _formula(text)
    assert found.is_meant_as_local()
    example = found.counterexample(knows_interleave=True)
    assert example is not None and example.fault is Fault.WRONG
    assert str(example) == WRONG[text]


LATE = "(seq_len // dcp_size + (dcp_rank < seq_len % dcp_size)) // compress_ratio"
EARLY = "seq_len // k_ratio // dcp_size + (dcp_rank < seq_len // k_ratio % dcp_size)"


def test_a_ratio_divides_the_length_and_not_the_share() -> None:
    late = _formula(LATE).counterexample(knows_interleave=False)
    assert late is not None and late.fault is Fault.RATIO
    assert str(late) == str(divided_late()) == "L=2, N=2, r=0, I=1, k=2: 0, should be 1"
    assert _formula(LATE).counterexample(knows_interleave=False, whole=True) is None
    assert _formula(EARLY).counterexample(knows_interleave=False) is None
    # Rounded up it is how many entries have begun, which is another quantity.
    begun = LATE.replace("(seq", "-(-(seq", 1) + ")"
    assert _formula(begun).counterexample(knows_interleave=False) is None


def test_chunks_of_whole_entries_may_be_counted_in_entries() -> None:
    for point in (Point(40, 2, 1, 4, 4), Point(37, 4, 2, 2, 2), Point(31, 3, 0, 4, 2)):
        assert point.local // point.ratio in point.entries


@pytest.mark.parametrize("text", OTHER)
def test_other_quantities_are_no_local_lengths(text: str) -> None:
    found = formula(ast.parse(text, mode="eval").body)
    assert found is None or not found.is_meant_as_local()


CAPS = {
    "(max_len + dcp_size * I0 - 1) // (dcp_size * I0) * I0": False,  # of no length
    "(seq_len + dcp_size * I0 - 1) // (dcp_size * I0) * I0": True,
    "cdiv(seq_len, dcp_size * I0) * I0": True,
    "-(-seq_len // dcp_size)": True,
    "cdiv(seq_len, dcp_size) * I0": False,
    "seq_len // (dcp_size * I0) * I0": False,
    "cdiv(seq_len, dcp_size * I0) * I0 - dcp_rank * 0": False,
}
OWNERS = {
    "positions % dcp_size": "i=1, N=2, I=2: rank 1, should be rank 0",
    "slots - slots // CP_SIZE * CP_SIZE": "i=1, N=2, I=2: rank 1, should be rank 0",
    "pos % (block_size * dcp_size) % dcp_size": "i=1, N=2, I=2, B=2: rank 1, should be rank 0",
    "positions % (KV_BLOCK_SIZE * CP_SIZE) // I0 % CP_SIZE": None,
    "positions // page_size % dcp_size": None,  # blocks dealt out whole
    "positions % page_size % dcp_size": None,
    "positions // I0 % dcp_size": None,
    "(pos % (dcp_size * I0)) // I0": None,
    "positions // dcp_size": None,  # meant as something else
    "blocks % dcp_size": None,
    "tp_rank % dcp_size": None,
}


@pytest.mark.parametrize("text", CAPS)
def test_caps(text: str) -> None:
    node = ast.parse(text.replace("I0", "cp_interleave"), mode="eval").body
    assert is_cap(node) is CAPS[text]


@pytest.mark.parametrize("text", OWNERS)
def test_owners(text: str) -> None:
    example = wrong_owner(ast.parse(text.replace("I0", "cp_interleave"), mode="eval").body)
    assert (str(example) if example is not None else None) == OWNERS[text]


@pytest.mark.parametrize("interleave", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_the_local_length_counts_tokens(size: int, interleave: int) -> None:
    for length in range(70):
        owners = [(token // interleave) % size for token in range(length)]
        for rank in range(size):
            assert Point(length, size, rank, interleave).local == owners.count(rank)


@pytest.mark.parametrize(
    "text",
    ["x.__class__", "f(2)", "'a' * 3", "2 ** 99", "1 // 0", "[1][0]", "1 < 2 < 3", "x @ x", "()"],
)
def test_what_is_no_integer_arithmetic_is_not_evaluated(text: str) -> None:
    with pytest.raises(NotArithmetic):
        arithmetic(ast.parse(text, mode="eval").body, lambda _: None)(None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-7 // 2", -4),
        ("clamp_min(-3, 0) + clamp_max(9, 4)", 4),
        ("torch.where(1 > 2, 5, 6)", 6),
        ("torch.div(7, 2, rounding_mode='floor')", 3),
        ("np.clip(9, None, 4)", 4),
        ("(5).clamp(min=7, max=8)", 7),
        ("round_up(5, 4) + round_down(5, 4)", 12),
        ("0 or 3 and 2", 2),
        ("1 if not 0 else 2", 1),
        ("torch.remainder(-1, 4)", 3),
        ("max(1, 5, 3) - min(4, 2)", 3),
        ("6 & 3 | 8", 10),
    ],
)
def test_arithmetic(text: str, value: int) -> None:
    assert arithmetic(ast.parse(text, mode="eval").body, lambda _: None)(None) == value
