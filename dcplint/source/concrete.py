"""Parsing with LibCST, for syntax newer than the running Python and for edits."""

from __future__ import annotations

import re

import libcst as cst

from dcplint.source.outline import mask

# LibCST's parser recurses natively, and would end the process where Python raises.
_DEEPEST = 200  # brackets, as CPython's tokenizer
_LONGEST = 1000  # tokens in a row that may nest in one another without brackets
_LARGEST = 2_000_000  # characters; LibCST takes seconds per megabyte
_TOKEN = re.compile(r"[()\[\]{}]|[,;:]|\\?\n|\w+|[^\w\s]")


def parse_concrete(text: str) -> cst.Module | None:
    """The concrete syntax tree of `text`; None where LibCST cannot parse it."""
    if not _is_safe(text):
        return None
    try:
        return cst.parse_module(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # its parser panics with what is no Exception
        return None


def _is_safe(text: str) -> bool:
    """Whether nothing in `text` is nested so deeply that parsing it could overflow the stack."""
    if len(text) > _LARGEST or text.count("elif ") > _LONGEST:
        return False
    depth = run = 0
    for match in _TOKEN.finditer(mask(text)):
        token = match.group()
        run += 1
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token in ",;" or (token == "\n" and depth <= 0):
            run = 0
        if depth > _DEEPEST or run > _LONGEST:
            return False
    return True
