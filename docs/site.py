"""What the site has beyond the pages of docs/: the README as its front page, and ways to files outside of docs/.

GitHub follows relative links into the whole repository; a site has the pages of docs/ alone. So that one text serves
both, links that leave docs/ become addresses on GitHub here, where mkdocs reads a page.
"""

from __future__ import annotations

import posixpath
import re
from itertools import count
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
SOURCES = "https://github.com/kernelgate/kernelgate/blob/HEAD"
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The front page is the README, whose links begin one folder further up; and the schemas of what commands print."""
    from kernelgate.ci.commands import schema

    for name, model in schema.models().items():
        address = f"schemas/{name.replace(' ', '-')}.schema.json"
        files.append(File.generated(config, address, content=schema.text(model)))
    files.append(File.generated(config, "index.md", content=(ROOT / "README.md").read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    folder = "" if page.file.src_uri == "index.md" else posixpath.dirname(f"docs/{page.file.src_uri}")
    return rewritten(markdown, folder)


def on_page_content(html: str, **_: object) -> str:
    """Each table scrolls by itself on a phone, in a box that the keyboard reaches."""
    numbers = count(1)
    box = '<div class="scroll" role="region" tabindex="0" aria-label="Table {}"><table>'
    return re.sub("<table>", lambda _: box.format(next(numbers)), html).replace("</table>", "</table></div>")


def on_post_page(output: str, **_: object) -> str:
    """The theme gives its search no name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


on_post_template = on_post_page  # of the page for addresses that are not there


def rewritten(markdown: str, folder: str) -> str:
    """The text with its links as the site has them; `folder`: where the text lies in the repository."""

    def leading(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[2]))
        inside = path.startswith("docs/")
        target = posixpath.relpath(path, folder or "docs") if inside else f"{SOURCES}/{path}"
        return f"{found[1]}{target}{found[3] or ''})"

    return LINK.sub(leading, markdown)
