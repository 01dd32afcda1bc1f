"""A small report with every shape a finding can take."""

from collections.abc import Sequence

from dcplint.findings.changes import StateAttribute
from dcplint.findings.model import (
    Applicability,
    Confidence,
    Edit,
    Evidence,
    Finding,
    Fix,
    Location,
    Role,
    Severity,
    Tree,
)
from dcplint.report.model import Engine, Report

SOURCE = """\
from vllm.v1.attention.backend import AttentionImpl


class PagedBase(AttentionImpl):
    pass


class PagedDecodeImpl(PagedBase):
    def forward(self, layer, q, kv_cache, attn_metadata):
        if attn_metadata.dcp_local_seq_lens is None:
            attn_metadata.dcp_local_seq_lens = get_dcp_local_seq_lens(
                attn_metadata.seq_lens,
                self.dcp_world_size,
                self.dcp_rank,
                self.interleave,
                # rows of the warm-up batch
                attn_metadata.num_reqs,
            )
        return paged_decode(q, kv_cache, attn_metadata.seq_lens, attn_metadata.block_table, "名前", scale=self.sm_scale, window=self.window)
"""  # noqa: E501
PLUGIN = SOURCE.split("\n")

ENGINE = ["", "class AttentionImpl:", "\tsupports_dcp: bool = True"]

PACK = ["capabilities:", "  supports_dcp:", "    default: true"]


def lines(location: Location) -> Sequence[str]:
    if location.tree is Tree.ENGINE:
        return [""] * 639 + ENGINE
    if location.tree is Tree.PACK:
        return PACK
    return PLUGIN if location.path.startswith("src/plugin") else []


def _plugin(line: int, text: str) -> Location:
    column = PLUGIN[line - 1].index(text) + 1
    return Location("src/plugin/impl.py", line, column, line, column + len(text))


IMPLICIT = Finding(
    "DCP101",
    "implicit-capability",
    Severity.WARNING,
    Confidence.HIGH,
    "`PagedDecodeImpl` supports DCP only because `AttentionImpl` says so for everybody; "
    "nothing in its own lineage does",
    _plugin(8, "PagedDecodeImpl"),
    symbol="PagedDecodeImpl",
    evidence=(
        Evidence(
            "`supports_dcp` is true here, and nowhere closer",
            Location("vllm/v1/attention/backend.py", 642, 2, 642, 27, Tree.ENGINE),
            Role.ORIGIN,
        ),
        Evidence("`PagedBase` says nothing", _plugin(4, "PagedBase"), Role.MRO),
        Evidence(
            "`AttentionImpl` says true",
            Location("vllm/v1/attention/backend.py", 641, 7, 641, 20, Tree.ENGINE),
            Role.MRO,
        ),
        Evidence(
            "from 0.30.0 on it resolves to false, and selection rejects it",
            _plugin(8, "PagedDecodeImpl"),
        ),
    ),
    fix=Fix(
        "say `supports_dcp: bool = False` in `PagedDecodeImpl`",
        Applicability.SAFE,
        StateAttribute(_plugin(8, "class"), _plugin(8, "class"), "supports_dcp", False),
        (Edit(Location("src/plugin/impl.py", 9, 1), "    supports_dcp: bool = False\n"),),
    ),
    fingerprint="00000000000000a1",
)

FALLBACK = Finding(
    "DCP202",
    "masking-fallback",
    Severity.ERROR,
    Confidence.MEDIUM,
    "the fallback hides that the draft runner leaves `dcp_local_seq_lens` out",
    Location("src/plugin/impl.py", 11, 13, 18, 14),
    symbol="PagedDecodeImpl.forward",
    evidence=(
        Evidence("holds where it is None", _plugin(10, "attn_metadata"), Role.GUARD),
        Evidence("lives in a file that is gone", Location("gone.py", 3000), Role.PRODUCER),
        Evidence(
            "true by default",
            Location("vllm.yaml", 3, 5, 3, 18, Tree.PACK),
            Role.ORIGIN,
        ),
    ),
    fingerprint="00000000000000b2",
)

KERNEL = Finding(
    "DCP303",
    "open-coded-length",
    Severity.ERROR,
    Confidence.HIGH,
    "`paged_decode` gets a length that is no local one",
    _plugin(19, "attn_metadata.seq_lens"),
    symbol="PagedDecodeImpl.forward",
    fingerprint="00000000000000c3",
)

WINDOW = Finding(
    "DCP404",
    "dropped-argument",
    Severity.NOTE,
    Confidence.HIGH,
    "100% of it,\nall: of it",
    _plugin(19, "scale=self.sm_scale, window=self.window"),
    symbol="PagedDecodeImpl.forward",
    fingerprint="00000000000000d4",
)

# A line end, a terminal escape, an undecodable byte and a right-to-left override in the path.
ODD = Finding(
    "DCP001",
    "unreadable-file",
    Severity.ERROR,
    Confidence.HIGH,
    "cannot be read: \x1b[31mred\x1b[0m \u202e",
    Location("a b/50%, x:y/\nnä\udc80\x1b[2J\u202e.py", 1),
    fingerprint="00000000000000e5",
)

REPORT = Report(
    findings=(ODD, IMPLICIT, FALLBACK, KERNEL, WINDOW),
    lines=lines,
    engines=(Engine("vllm", "0.29.0", "installed distribution"),),
    notices=("vllm 0.34.0 is newer than the pack",),
    files=3231,
    seconds=1.2345,
)
EMPTY = Report(findings=(), lines=lines, files=1)
