"""Which part a name plays in length arithmetic: length, world size, rank, interleave size or ratio.

Engines, kernels and plugins spell these in few ways (`dcp_world_size`, `CP_SIZE`, `cp_interleave`),
as attributes, parameters and compile-time constants alike, so the last name decides. What rank and
size are called besides is `units.ranks`' to say.
"""

from __future__ import annotations

import ast
import enum
import re
from functools import cache

from dcplint.facts.expressions import dotted_name

_SIZE = re.compile(r"(attn_)?(d?cp|total_cp)_(world_)?size|decode_context_parallel_size", re.I)
_RANK = re.compile(r"(attn_)?(d?cp|total_cp)_rank", re.I)
_INTERLEAVE = re.compile(r"((d?cp|kv_cache|cp_kv_cache)_)*interleave(_size)?", re.I)
_RATIO = re.compile(r"(\w+_)?(compress(ion)?_?)?ratio", re.I)
_LENGTH = frozenset({"len", "lens", "length", "lengths", "seqlen", "seqlens", "tokens"})
_BLOCK = re.compile(r"(\w+_)?(block|page)_size", re.I)
_NUMBERED = frozenset({"idx", "index", "indices"})
_INDEX = frozenset({"pos", "position", "positions", "slot", "slots"})
_OTHER = frozenset(
    {"local", "block", "blocks", "page", "pages", "head", "heads", "rank", "ranks", "layer", "max"}
)
_ROWS = frozenset({"num_tokens", "n_tokens", "total_tokens", "total_num_tokens"})
"""What the rows of a batch are called as often as a length: only its origin tells."""

SIZE, RANK = "dcp_world_size", "dcp_rank"
"""What the size and the rank are called where a name must say what they are."""


SIDES = frozenset({"cpu", "gpu", "np"})
"""The attributes of a buffer that lies on the host and on the device."""


class Role(enum.Enum):
    """A part in the arithmetic of one rank's share: of a length, or of a token's place."""

    LENGTH = "L"
    SIZE = "N"
    RANK = "r"
    INTERLEAVE = "I"
    INDEX = "i"
    RATIO = "k"  # how many tokens one entry of a compressed cache stands for
    BLOCK = "B"  # how many tokens one rank holds of a block; see `is_block_size`


def role(node: ast.expr) -> Role | None:
    """The part that a name or an attribute plays, as far as its name tells."""
    dotted = dotted_name(node)
    if dotted is None:
        return None
    owner, _, name = dotted.rpartition(".")
    return _named(owner.rpartition(".")[2] if name in SIDES else name)


def is_block_size(node: ast.expr) -> bool:
    """Whether a name or an attribute is called like the size of a block.

    It plays a part beside places only: kernels call the sizes of their tiles so too.
    """
    return _BLOCK.fullmatch((dotted_name(node) or "").rpartition(".")[2]) is not None


def is_longest(node: ast.expr) -> bool:
    """Whether a name or an attribute is called like the largest of some lengths.

    Without the rank, what is made of it is a bound for all ranks; with it, a length like others.
    """
    return _is_longest((dotted_name(node) or "").rpartition(".")[2])


@cache
def _is_longest(name: str) -> bool:
    words = name.lower().split("_")
    return "max" in words and _named("_".join(w for w in words if w != "max")) is Role.LENGTH


@cache
def _named(name: str) -> Role | None:
    if _SIZE.fullmatch(name):
        return Role.SIZE
    if _RANK.fullmatch(name):
        return Role.RANK
    if _INTERLEAVE.fullmatch(name):
        return Role.INTERLEAVE
    if _RATIO.fullmatch(name):
        return Role.RATIO
    words = set(name.lower().split("_"))
    if words & _OTHER or name.lower() in _ROWS:
        return None
    if "token" in words and words & _NUMBERED:
        return Role.INDEX  # no vocabulary entry: that is a token id
    if words & _LENGTH:
        return Role.LENGTH
    return Role.INDEX if words & _INDEX else None
