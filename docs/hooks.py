"""What Markdown makes of docstrings that are written for Python: roles become plain code, citations lead somewhere."""

import re
from typing import Any

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):<code>~?([^<]*)</code>")
CITATION = re.compile(r"\[([A-Z][A-Za-z]+(?:19|20)\d\d)\](_?)(?![\w(])")
CODE = re.compile(r"(<(?:pre|code)\b.*?</(?:pre|code)>)", re.DOTALL)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Roles without their names, ``::`` as a colon, citations as links to the bibliography."""
    html = ROLE.sub(r"<code>\1</code>", html).replace("::</p>", ":</p>")
    top = "../" * page.url.count("/")
    parts = CODE.split(html)  # text and code by turns
    parts[::2] = [CITATION.sub(rf'<a href="{top}references.bib">[\1]</a>', part) for part in parts[::2]]
    return "".join(parts)
