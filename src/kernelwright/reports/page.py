"""A report page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Picture", "render_page", "write_whole"]

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; background: white; }
figcaption { font-size: .9rem; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for paragraph in paragraphs %}<p>{{ paragraph }}</p>
{% endfor %}
<table>
<thead><tr>{% for name in columns %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody>
</table>
{% for picture in pictures %}
<figure><img src="data:image/png;base64,{{ picture.base64 }}" alt="{{ picture.alternative }}">
<figcaption>{{ picture.caption }}</figcaption></figure>
{% endfor %}
</body>
</html>
"""


@dataclass(frozen=True)
class Picture:
    """A figure as PNG bytes, with words for those who do not see it."""

    png: bytes
    caption: str
    alternative: str

    @classmethod
    def of(cls, figure: Any, caption: str, alternative: str) -> Picture:
        """Draw a matplotlib figure."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130)
        return cls(buffer.getvalue(), caption, alternative)

    @property
    def base64(self) -> str:
        """The bytes as text."""
        return base64.b64encode(self.png).decode()


def render_page(
    title: str, paragraphs: Sequence[str], rows: Sequence[Mapping[str, Any]], pictures: Sequence[Picture]
) -> str:
    """The page as text; every value is escaped."""
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(TEMPLATE)
    columns = list(rows[0]) if rows else []
    cells = [[row[name] for name in columns] for row in rows]
    return template.render(title=title, paragraphs=paragraphs, columns=columns, rows=cells, pictures=pictures)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is never seen half-written."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
