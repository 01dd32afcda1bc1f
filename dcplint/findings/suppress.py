"""Suppression comments."""

from __future__ import annotations

# Any file that holds a suppression contains these bytes, in every encoding Python reads.
MARKER = b"dcplint:"
