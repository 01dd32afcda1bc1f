"""A suppression comment that cannot be followed.

## What it flags
A `dcplint:` comment that cannot be followed: `ignore` without the rules it is about, a rule that
does not exist, or anything else than `ignore` and `ignore-file`.

## Why it breaks
A bare `ignore` would hide every fault on the line, those of rules not yet written included, and a
misspelt one hides nothing while it looks as if it did.

## Bad
```python
class MyImpl(AttentionImpl):  # dcplint: ignore
    ...
```

## Good
```python
class MyImpl(AttentionImpl):  # dcplint: ignore[DCP101] never selected with DCP, see select_impl
    ...
```

## How it is confirmed
Nothing is run: it is about comments.

## Known limits
Only comments that say `# dcplint:` are looked at. Of a comment that names both known and
unknown rules, the known ones are followed. This rule itself is silenced by `ignore` or
`per-file-ignores`, never by a comment.
"""

from dcplint.checks.base import Rule
from dcplint.findings.model import Severity

RULE = Rule(
    code="DCP004",
    name="invalid-suppression",
    summary="flags suppressions that cannot be followed",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="none: it is about comments",
    follows=False,
)
