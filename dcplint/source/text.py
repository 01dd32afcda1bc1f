"""Reading Python source: encodings, line ends, and columns as people count them."""

from __future__ import annotations

import codecs
import io
import tokenize
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from dcplint import disk


class UnreadableSource(Exception):
    """A file that cannot be read or parsed; the message is one sentence for people.

    `line` and `column` are 1-based.
    """

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file, with plain line ends. Raises UnreadableSource: the system's reason."""
    return _plain(disk.read, path)


def skim_bytes(path: str | Path) -> bytes:
    """The same of a file of which not all counts; see `disk.skim`."""
    return _plain(disk.skim, path)


def _plain(read: Callable[[str | Path], bytes], path: str | Path) -> bytes:
    try:
        return plain_lines(read(path))
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror or error}") from error


def plain_lines(data: bytes) -> bytes:
    """`data` with every line ended by `\\n`, however Python source may end them.

    No encoding that Python source can have uses these bytes for anything else.
    """
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def decode(data: bytes) -> str:
    """The text of Python source `data`, by its BOM or PEP 263 cookie, line ends as `\\n`.

    Raises UnreadableSource, with the line, where the bytes are no such text.
    """
    nul = data.find(b"\0")
    if nul >= 0:
        raise UnreadableSource("contains a NUL byte: not Python source", _line_of(data, nul))
    if data.startswith(codecs.BOM_UTF8) or _may_have_cookie(data):
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except SyntaxError as error:
            raise UnreadableSource(f"names an unusable encoding: {error.msg}") from error
    else:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
        if encoding != "utf-8":
            text.encode()  # some codecs make text that is none
    except UnicodeDecodeError as error:
        line = _line_of(data, error.start)
        raise UnreadableSource(
            f"is not {encoding} text (byte 0x{data[error.start]:02x}); "
            "declare its encoding in line 1 or convert it",
            line,
        ) from error
    except (LookupError, UnicodeError) as error:
        raise UnreadableSource(f"names an encoding that is none of text: {encoding}") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def check_text(data: bytes) -> None:
    """Raises UnreadableSource where `data` is not Python source text; cheap for UTF-8."""
    if b"\0" in data:
        decode(data)
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError:
        decode(data)


def _may_have_cookie(data: bytes) -> bool:
    second_line = data.find(b"\n", data.find(b"\n") + 1)
    return data.find(b"coding", 0, second_line if second_line >= 0 else len(data)) >= 0


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


@dataclass(frozen=True)
class SourceText:
    """Decoded source with line access. Lines are 1-based."""

    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends. Unlike `str.splitlines`, split where Python splits."""
        return self.text.split("\n")

    @cached_property
    def _starts(self) -> array[int]:
        """Where each line starts: a twentieth of what the lines themselves would take."""
        lengths = map((1).__add__, map(len, self.text.split("\n")))
        return array("L", accumulate(lengths, initial=0))

    def between(self, first: int, last: int) -> str:
        """The text of lines `first` to `last`, as far as there are such lines."""
        starts = self._starts
        last = min(last, len(starts) - 1)
        return self.text[starts[first - 1] : starts[last] - 1] if 0 < first <= last else ""

    def column(self, line: int, utf8_offset: int) -> int:
        """The 1-based code-point column of a 0-based UTF-8 offset, as `ast` reports it."""
        content = self.between(line, line)
        if content.isascii():
            return utf8_offset + 1
        return len(content.encode()[:utf8_offset].decode(errors="ignore")) + 1
