"""Every link of the project's Markdown leads somewhere, on a forge as on the site. Nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pages
import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("proofs/**/*.md")),
]
HOSTS = {"arxiv.org", "github.com", "keepachangelog.com"}
"""Where the project links to. ``sphinx-build -b linkcheck -c docs . build/links`` fetches every address."""


def strange_links(text: str) -> list[str]:
    """External links that are not https, or to a host that is not listed."""
    outside = [link for link in pages.links(text) if urlsplit(link).scheme]
    return [
        link for link in outside if not link.startswith("https://") or urlsplit(link).hostname not in HOSTS
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_somewhere(file: Path) -> None:
    text = file.read_text()
    assert pages.broken_links(file, text) == []
    assert strange_links(text) == []


def test_a_broken_link_is_noticed() -> None:
    file = ROOT / "docs" / "findings.md"
    text = (
        "[a](closed_form.md) [b](closed_forms.md#nowhere) [c](../proofs/README.md#ceiling) "
        "[d](../proofs/README.md#floor) [e](#the-rule-is-not-exact) [f](#the-rule-is-exact) `[g](h.md)`"
    )
    assert pages.broken_links(file, text) == [
        "findings.md: closed_form.md",
        "findings.md: closed_forms.md#nowhere",
        "findings.md: ../proofs/README.md#floor",
        "findings.md: #the-rule-is-exact",
    ]


def test_a_strange_address_is_noticed() -> None:
    text = "[a](http://arxiv.org/abs/1) [b](https://example.com/) [c](https://arxiv.org/abs/1) [d](a.md)"
    assert strange_links(text) == ["http://arxiv.org/abs/1", "https://example.com/"]
