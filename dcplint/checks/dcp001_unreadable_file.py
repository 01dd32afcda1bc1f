"""A Python file cannot be read or parsed.

## What it flags
A Python file that has to be understood and cannot be: no permission to read it, bytes that its
declared encoding does not allow, a syntax error. A file that merely uses syntax newer than the
running Python is read all the same. So is one with a function that nests more than 150 levels deep,
a chain of as many `elif` for instance: the function alone is left out, and said to be.

## Why it breaks
Nothing in such a file is checked, and a class that inherits from one of its classes is judged
without it. A clean report over a file that was never read would be a false promise.

## Bad
```python
class MyImpl(AttentionImpl)
    supports_dcp = True
```

## Good
```python
class MyImpl(AttentionImpl):
    supports_dcp = True
```

## How it is confirmed
Nothing is run: the parser's own refusal is the proof.

## Known limits
Only what the question at hand leads to is parsed: files asked about by name, files that import the
engine, and, in the engine itself, files and functions that mention a word of its contract. What is
broken elsewhere is not noticed.
"""

from dcplint.checks.base import Rule
from dcplint.findings.model import Severity

RULE = Rule(
    code="DCP001",
    name="unreadable-file",
    summary="flags files that cannot be read or parsed",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="none: a parse error needs no confirmation",
    follows=False,
)
