"""Links and anchors of the project's Markdown, and of the built pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def headings(text: str) -> list[str]:
    """The anchors that a forge gives to the headings: lower case, no punctuation, hyphens for spaces."""
    titles = re.findall(r"^#{1,6} +(.*?) *$", FENCE.sub("", text), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain]


def links(text: str) -> list[str]:
    """Targets of the Markdown links outside of code."""
    return LINK.findall(CODE.sub("", FENCE.sub("", text)))


def broken_links(file: Path, text: str) -> list[str]:
    """Links of a page, as a forge shows it, that lead to no file or to no anchor."""
    broken = []
    for link in links(text):
        if link.startswith("https://"):
            continue
        place, anchor = urldefrag(link)
        target = (file.parent / place) if place else file
        if not target.exists():
            broken.append(f"{file.name}: {link}")
        elif anchor:
            page = target.read_text()
            if anchor not in {*headings(page), *re.findall(r'<a id="([^"]+)"', page)}:
                broken.append(f"{file.name}: {link}")
    return broken


class Page(HTMLParser):
    """What a built page defines (``ids``), links to (``links``) and loads by itself (``loads``)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "source", "iframe", "object") and (given.get("src") or given.get("data")):
            self.loads.append(given.get("src") or given["data"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(given["href"])


def site_faults(site: Path) -> list[str]:
    """Links and anchors of the built pages that lead nowhere, and whatever a page would fetch from elsewhere."""
    pages = {file: Page(file.read_text()) for file in sorted(site.rglob("*.html"))}
    faults = []
    for file, page in pages.items():
        name = file.relative_to(site)
        for link in page.links + page.loads:
            if re.match(r"[a-z]+:|//", link):
                if link in page.loads and not link.startswith("data:"):
                    faults.append(f"{name} loads {link}")
                continue
            place, anchor = urldefrag(link)
            target = (file.parent / unquote(place.partition("?")[0])).resolve() if place else file
            lost = target in pages and anchor != "" and unquote(anchor) not in pages[target].ids
            if lost or not target.exists():
                faults.append(f"{name}: {link}")
    return faults
