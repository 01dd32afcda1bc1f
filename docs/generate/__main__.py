"""Write everything that is generated: `python -m docs.generate`."""

from __future__ import annotations

from docs.generate import configuration, picture, rules

for path, text in {**rules.pages(), **configuration.pages(), **picture.pages()}.items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
for path in rules.left_over():
    path.unlink()
