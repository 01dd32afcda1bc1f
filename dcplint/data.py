"""Where the files that are not Python lie: packs, kernels and fixtures."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """The folder `name` (`rules`, `kernels` or `fixtures`), wherever dcplint runs from.

    A wheel carries it inside the package as `_name`; a checkout, an editable install and an
    unpacked sdist have it beside the package. Raises FileNotFoundError, with the remedy.
    """
    shipped = _PACKAGE / f"_{name}"
    if shipped.is_dir():
        return shipped
    checkout = _PACKAGE.parent
    # pyproject.toml tells a checkout from a site-packages that happens to hold a `rules`.
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    raise FileNotFoundError(
        f"dcplint's own folder '{name}' is missing beside {_PACKAGE}; reinstall dcplint"
    )
