"""A suppression comment that does not say why.

## What it flags
A suppression comment that ends at the bracket. Off by default; select it where a review wants a
reason for every exception.

## Why it breaks
A suppression claims that a capability holds, or that a length is right, against the evidence the
finding shows. The next reader cannot tell a checked claim from a silenced alarm.

## Bad
```python
class MyImpl(AttentionImpl):  # dcplint: ignore[DCP101]
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
Any word counts as a reason. This rule itself is silenced by `ignore` or `per-file-ignores`, never
by a comment.
"""

from dcplint.checks.base import Rule
from dcplint.findings.model import Severity

RULE = Rule(
    code="DCP003",
    name="suppression-without-reason",
    summary="flags suppressions that give no reason",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="none: it is about comments",
    default=False,
    follows=False,
)
