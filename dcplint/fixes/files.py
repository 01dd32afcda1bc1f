"""Applying edits to the bytes of a file, in its own encoding and with its own line ends."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from dcplint.findings.model import Edit
from dcplint.source.parse import parse_text
from dcplint.source.text import UnreadableSource, decode

_LINE_END = re.compile(r"\r\n|\r|\n")


class CannotEdit(Exception):
    """A file that is better left alone; the message ends a sentence that begins with its path."""


@dataclass(frozen=True, slots=True)
class EditableText:
    """A file's text as it is written, line ends included, and how to write it again."""

    text: str
    encoding: str
    starts: tuple[int, ...]
    newline: str

    @classmethod
    def of(cls, data: bytes) -> EditableText:
        """The text of Python source `data`. Raises CannotEdit."""
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = data.decode(encoding)
            # Some encodings have several ways to write a text; another one would be a change.
            if text.encode(encoding) != data:
                raise CannotEdit(f"would not survive being written as {encoding} again")
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise CannotEdit("cannot be decoded") from error
        ends = list(_LINE_END.finditer(text))
        newline = ends[0].group() if ends else "\n"
        return cls(text, encoding, (0, *(end.end() for end in ends)), newline)

    def lines(self) -> list[str]:
        """Its lines with their ends, as git tells lines apart: a lone CR ends none."""
        return [line for line in re.split(r"(?<=\n)", self.text) if line]

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """The file after `edits`, of which no two overlap. Raises CannotEdit."""
        pieces: list[str] = []
        done = 0
        for start, end, replacement in sorted(map(self._span, edits)):
            pieces += (self.text[done:start], replacement)
            done = end
        text = "".join((*pieces, self.text[done:]))
        try:
            data = text.encode(self.encoding)
            parse_text(decode(data))
        except (UnicodeError, UnreadableSource) as error:
            raise CannotEdit(f"would be broken by the fix ({error})") from error
        return data

    def _span(self, edit: Edit) -> tuple[int, int, str]:
        place = edit.location
        start = self._offset(place.line, place.column)
        end = self._offset(place.end_line, place.end_column)
        return start, end, edit.replacement.replace("\n", self._newline_at(start))

    def _offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column - 1

    def _newline_at(self, offset: int) -> str:
        """The line end in use around an offset: a file may mix them."""
        line = self.starts[bisect_right(self.starts, offset) - 1]
        match = _LINE_END.search(self.text, line)
        return match.group() if match else self.newline


def overlap(one: Edit, other: Edit) -> bool:
    """Whether two edits of a file touch: then only one of them can be made as it is written."""
    first, second = sorted((one, other), key=_start)
    return _start(second) <= _end(first)


def _start(edit: Edit) -> tuple[int, int]:
    return edit.location.line, edit.location.column


def _end(edit: Edit) -> tuple[int, int]:
    return edit.location.end_line, edit.location.end_column
