"""The site's files: whole without a script, inert whatever strangers call things, and alike for the same history."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.report import dashboard_write as write
from kernelgate.ci.report.dashboard import Dashboard
from kernelgate.ci.report.dashboard_write import chart_library
from tests.ci.report import dashboard_examples as made
from tests.ci.report.browser import Elements

LIBRARY = {"uplot.js": "", "uplot.css": ""}


def written(shown: Dashboard, folder: Path) -> dict[str, str]:
    write.write(shown, LIBRARY, folder)
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return written(made.dashboard(80), tmp_path_factory.mktemp("site"))


def test_the_first_page_says_all_there_is_of_each_case(site: dict[str, str]) -> None:
    text = Elements(site["index.html"]).text
    cases = [one.case for one in made.dashboard(80).series]
    for words in (*cases, "NVIDIA L4", "rmsnorm", "v1.2", "1.26×", "confirmed", "and 7 more"):
        assert words in text
    assert "suspected" not in text, "nobody is told of what no comparison has confirmed"
    assert "6.4 USD" in site["health.html"]


def kinds(page: Elements) -> set[str]:
    """The names of its elements and of their attributes."""
    return {word for element in page.elements for word in element.split(" ")}


def test_names_of_strangers_do_nothing(site: dict[str, str], tmp_path: Path) -> None:
    hostile = written(made.hostile(), tmp_path / "hostile")
    usual = {one for name, page in site.items() if name.endswith(".html") for one in kinds(Elements(page))}
    for name, content in hostile.items():
        assert "\u202e" not in content, name
        if name.endswith(".html"):
            page = Elements(content)
            assert kinds(page) <= usual
            assert not [one for one in page.values if not re.fullmatch(r"(href|src)=#?[\w./-]+", one)], page.values
    assert {path.name for path in tmp_path.iterdir()} == {"hostile"}, "nothing is written beside the site"
    assert all(re.fullmatch(r"[\w./-]+", name) and ".." not in name for name in hostile), hostile.keys()


def test_pages_load_scripts_of_their_own_alone_and_fetch_nothing(site: dict[str, str]) -> None:
    for name, content in site.items():
        if name.endswith(".html"):
            policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)
            assert policy
            assert "default-src 'none'; style-src 'self'; script-src 'self'" in policy[0]
            assert "unsafe" not in policy[0]
            assert not re.findall(r'(?:src|stylesheet" href)="(?:\w+:)?//', content)
        assert "fetch(" not in content


def test_where_uplot_is_missing_not_whole_or_another_one_that_is_said(tmp_path: Path) -> None:
    said = r"no whole uPlot 1\.6\.32 in .*: `npm install .* uplot@1\.6\.32"
    for version in ("1.6.32", "1.0.0"):
        with pytest.raises(KernelgateError, match=said):
            chart_library(tmp_path)
        (tmp_path / "package.json").write_text(f'{{"version": "{version}"}}')
    for name in write.LIBRARY:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(KernelgateError, match=said):
        chart_library(tmp_path)
