"""What goes wrong on the user's side."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right: a path, an option, a configuration, a pack.

    Its message is the one sentence that is printed; the exit status is 2.
    """
