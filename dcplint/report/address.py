"""Where the pages of the rules lie, if the distribution's metadata say so."""

from __future__ import annotations

from functools import cache

_LABEL = "documentation"


@cache
def documentation() -> str | None:
    """`Documentation` of the project's addresses, without a slash at its end."""
    from importlib import metadata  # not for formats that show no address

    try:
        listed = metadata.metadata("dcplint").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:
        return None  # run from its source
    for line in listed:
        label, _, address = str(line).partition(",")
        if label.strip().lower() == _LABEL:
            return address.strip().rstrip("/")
    return None


def page_of(code: str) -> str | None:
    """The address of a rule's page; None where no address is known, and none is made up."""
    found = documentation()
    return f"{found}/rules/{code}.md" if found else None
