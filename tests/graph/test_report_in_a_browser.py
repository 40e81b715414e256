"""A report in a real browser: it runs nothing, asks for nothing, breaks no rule of its own; hostile text is text."""

from pathlib import Path

import pytest
from browser import browser_path, opened_browser
from logs import HOSTILE, hostile_report

from coordinate_agents.graph.report_html import html
from coordinate_agents.graph.text import visible

BROWSER = browser_path()
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="NO BROWSER: the report was not opened in one; install chromium to have that tested"
)
_SHOWN = "[...document.querySelectorAll('main > *')].every(each => each.getBoundingClientRect().height > 0)"


def test_the_page_of_hostile_texts_is_quiet_in_every_form(tmp_path: Path) -> None:
    assert BROWSER is not None
    path = tmp_path / "report.html"
    path.write_text(html(hostile_report()))
    with opened_browser(BROWSER, tmp_path) as page:
        page.open(path)
        assert page.value("document.title") == f"{visible(HOSTILE, limit=200)}: CREATED"
        assert page.value("document.querySelector('h1').textContent") == visible(HOSTILE, limit=200)
        assert page.value("document.querySelectorAll('script, img, iframe, link, form').length") == 0
        assert page.value(_SHOWN)
        backs = set()
        for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
            assert page.look(scheme=scheme, media=media, width=900).startswith(b"\x89PNG")
            backs.add(page.value("getComputedStyle(document.body).backgroundColor"))
        # The style is the one that the policy allows, dark where that is asked for, and never on paper.
        assert backs == {"rgb(255, 255, 255)", "rgb(13, 17, 23)"}
        # Nothing is wider than the window but what scrolls in a frame of its own.
        assert page.value("document.documentElement.scrollWidth <= window.innerWidth")
        page.value("document.querySelector('svg a').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        assert page.value("location.hash") == "#of-a"
        assert page.complaints() == []
        assert set(page.requests()) == {path.as_uri()}
