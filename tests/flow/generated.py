"""Random small programs about one record, for comparing the trace with what happens."""

from random import Random

_SIMPLE = (
    "m.dcp_local_seq_lens = [1]",
    "m.dcp_local_seq_lens = None",
    "m.dcp_local_seq_lens = kept",
    "kept = m.dcp_local_seq_lens",
    "kept = None",
    "m = CommonAttentionMetadata([4])",
    "m = CommonAttentionMetadata([4], dcp_local_seq_lens=kept)",
    "m = m.replace(num_reqs=2)",
    "m = m.replace(dcp_local_seq_lens=[3])",
    "m = copy.copy(m)",
    "n = m",
    "m = n",
    "n = copy.copy(m)",
    "n.dcp_local_seq_lens = [5]",
    "n.dcp_local_seq_lens = None",
    "m, n = n, m",
    "fill(m)",
    "drop(n)",
    "maybe(m, choose())",
    "m = filled(m)",
    "flag = choose()",
    "flag = not flag",
    "flag = kept is not None",
    "m.seq_lens = [7]",
)
_TESTS = (
    "choose()",
    "flag",
    "not flag",
    "get_dcp_group().world_size > 1",
    "get_dcp_group().world_size == 1",
    "m.dcp_local_seq_lens is None",
    "m.dcp_local_seq_lens is not None",
    "kept is None",
    "kept",
    "flag and kept is not None",
    "flag or m.dcp_local_seq_lens is None",
)
_HELPERS = """\
def fill(record):
    if get_dcp_group().world_size > 1:
        record.dcp_local_seq_lens = [8]


def drop(record):
    record.dcp_local_seq_lens = None


def maybe(record, ok):
    if not ok:
        return
    record.dcp_local_seq_lens = [9]


def filled(record):
    if record.dcp_local_seq_lens is None:
        return record.replace(dcp_local_seq_lens=[2])
    return record


def risky(ok):
    if ok:
        raise ValueError


def main(choose):
    m = n = CommonAttentionMetadata([4])
    kept, flag = None, choose()
"""


def program(seed: int) -> str:
    """A program that makes metadata and builds with it, the same for the same seed."""
    random = Random(seed)
    lines = _block(random, 1, random.randint(3, 7))
    return f"{_HELPERS}{lines}    Builder().build(m)\n"


def _block(random: Random, depth: int, length: int) -> str:
    return "".join(_statement(random, depth) for _ in range(length))


def _statement(random: Random, depth: int) -> str:
    pad = "    " * depth
    kind = random.random() if depth < 4 else 1.0
    inner = lambda: _block(random, depth + 1, random.randint(1, 2))  # noqa: E731
    if kind < 0.25:
        orelse = f"{pad}else:\n{inner()}" if random.random() < 0.5 else ""
        return f"{pad}if {random.choice(_TESTS)}:\n{inner()}{orelse}"
    if kind < 0.31:
        leave = random.choice(("break", "continue")) if random.random() < 0.4 else "pass"
        return f"{pad}for _ in range(2):\n{inner()}{pad}    if choose():\n{pad}        {leave}\n"
    if kind < 0.35:
        return f"{pad}while choose():\n{inner()}"
    if kind < 0.41:
        last = f"{pad}finally:\n{inner()}" if random.random() < 0.4 else ""
        return (
            f"{pad}try:\n{inner()}{pad}    risky(choose())\n{inner()}"
            f"{pad}except ValueError:\n{inner()}{last}"
        )
    if kind < 0.45:
        leave = random.choice(("Builder().build(m)", "raise RuntimeError"))
        return f"{pad}if {random.choice(_TESTS)}:\n{pad}    {leave}\n{pad}    return\n"
    return f"{pad}{random.choice(_SIMPLE)}\n"
