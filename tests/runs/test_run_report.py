"""`resispec report`: what the pages say, and, in a real browser, that one can read them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_cases import PLAN, Raising, Result, Slow, audited, check_whole, flip_byte, make_store, rows

from resispec_core.llama.store import LogitsStore
from resispec_core.report.run_page import (
    WORST,
    interval,
    markdown_code,
    number,
    path_text,
    render,
    reproduce,
    sentence,
)
from resispec_core.runs import Plan, Run, rule_totals
from resispec_core.runs.totals import rule_columns

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LOADS = re.compile(
    r"""\b(?:src|srcset|href|action|data|poster)\s*=\s*["']?(?!\#)[^"'>\s]|url\((?!\#)|@import|<iframe|<link"""
)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 40 positions and three rules."""
    folder = tmp_path_factory.mktemp("wide")
    store = make_store(folder / "store", positions=40, per_shard=20)
    audited(store, folder / "run", Plan(("resispec", "specinfer", "shaped"), 3))
    return folder / "run"


@pytest.fixture(scope="module")
def html(wide: Path) -> str:
    return render(Run.open(wide))[0]


# What they say.


def test_the_command_writes_both_pages(run: Callable[..., Result], whole: Path, tmp_path: Path) -> None:
    found = run("report", whole)
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines() == [
        f"written: {whole / 'report.html'}",
        f"written: {whole / 'report.md'}",
    ]
    told = run("report", whole, "--out", tmp_path / "pages", "--json").json
    assert (told["complete"], told["positions"], told["positions_in_store"]) == (True, 12, 12)
    for name in ("report.html", "report.md"):
        assert (tmp_path / "pages" / name).read_bytes() == (whole / name).read_bytes()
    assert Run.open(whole).complete  # the pages are no parts


def test_the_numbers_are_those_of_the_run(wide: Path, html: str) -> None:
    found = Run.open(wide)
    markdown = render(found)[1]
    for label in found.labels:
        columns = rule_columns(found, label)
        total = rule_totals(columns)
        tv = interval(columns["tv_low"].mean(), columns["tv_high"].mean())
        cells = [
            label,
            ", ".join(f"{a} on {b}" for a, b in total.verdicts.items()),
            tv,
            number(total.max_total_variation),
        ]
        assert f"| {' | '.join(cells)} |" in markdown
        for cell in cells:
            assert f">{cell}</td>" in html
        assert sentence(label, total) in markdown
        worst = sorted(columns["tv_low"], reverse=True)[:WORST]
        section = markdown.split(f"\n### {label}\n")[1].split("\n## ")[0].split("\n### ")[0]
        listed = [line for line in section.splitlines() if re.match(r"\| \d", line)]
        assert len(listed) == sum(value > 0 for value in worst)
    assert "BIASED" in markdown
    assert "EXACT_WITHIN" in markdown


def test_texts_of_tokens_are_only_text(whole: Path) -> None:
    """The contexts of the store are ``<b>&\\n|3``."""
    page, markdown = render(Run.open(whole))
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    lines = [line for line in markdown.splitlines() if re.match(r"\| \d+ \|", line)]
    assert lines
    for line in lines:
        assert len(re.split(r"(?<!\\)\|", line)) == 10  # eight cells
    assert markdown_code("a`b|c``d") == "```a`b\\|c``d```"
    assert markdown_code("`") == "`` ` ``"


def test_an_unfinished_run_says_so(run: Callable[..., Result], store: LogitsStore, tmp_path: Path) -> None:
    shard = store.path / store.shards[1].file
    flip_byte(shard)
    audited(store.path, tmp_path / "out")
    found = run("report", tmp_path / "out")
    assert found.code == 0
    assert "incomplete: 8 of 12 positions" in found.out
    for name in ("report.html", "report.md"):
        text = (tmp_path / "out" / name).read_text()
        assert "4 of 12 positions are missing" in text
        assert "was changed since it was recorded" in text


def test_what_cannot_be_reported(run: Callable[..., Result], store: LogitsStore, tmp_path: Path) -> None:
    assert "it is no run" in run("report", tmp_path / "nowhere").err
    audited(store, tmp_path / "empty", Plan((Raising(),), 1))
    found = run("report", tmp_path / "empty")
    assert (found.code, found.out) == (2, "")
    assert "no position of" in found.err
    (tmp_path / "file").write_text("")
    audited(store, tmp_path / "run")
    assert "cannot write to" in run("report", tmp_path / "run", "--out", tmp_path / "file").err


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        replace(PLAN, shaping={"temperature": 0.7, "top_k": 4}),
        Plan(("specinfer",), 2, "without-replacement"),
        Plan(("k-seq",), 2, "without-replacement", mismatched=True),
    ],
)
def test_the_command_given_makes_the_run_again(
    run: Callable[..., Result], store: LogitsStore, tmp_path: Path, plan: Plan
) -> None:
    audited(store, tmp_path / "first", plan)
    command = reproduce(Run.open(tmp_path / "first"))[0].split()
    assert command[0] == "resispec"
    places = {"STORE": store.path, "RUN": tmp_path / "second"}
    run(*(places.get(word, word) for word in command[1:]), "--workers", "1")
    check_whole(tmp_path / "second", tmp_path / "first")


def test_options_of_rules_are_in_the_command(
    run: Callable[..., Result], store: LogitsStore, tmp_path: Path
) -> None:
    options = (
        "--rule",
        "resispec",
        "--redistribution",
        "waterfill",
        "--logits",
        store.path,
        "--workers",
        "1",
    )
    run("audit", *options, "--out", tmp_path / "first")
    assert Run.open(tmp_path / "first").labels == ["resispec(redistribution=waterfill)"]
    assert "--redistribution waterfill" in reproduce(Run.open(tmp_path / "first"))[0]
    audited(store, tmp_path / "own", Plan((Slow(),), 1))
    assert reproduce(Run.open(tmp_path / "own")) == []
    assert "audit_store" in render(Run.open(tmp_path / "own"))[0]


def test_a_path_in_words() -> None:
    row = {
        "witness_token": 1,
        "witness_text": "a",
        "witness_accepted": False,
        "witness_rejected_texts": ["\n", None],
    }
    assert path_text(row) == "reject '\\n', reject (no text), resample 'a'"
    assert path_text({"witness_token": None}) == "–"


def test_the_page_loads_nothing(html: str) -> None:
    assert LOADS.findall(html) == []
    for fault in (
        '<img src="https://x/y.png">',
        "@import 'x.css';",
        "<style>a{background:url(x.png)}</style>",
        "<link rel=icon>",
    ):
        assert LOADS.findall(html.replace("</body>", fault + "</body>"))


# In a browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: no browser to drive"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no Chromium is installed ({', '.join(BROWSERS)}): the report is not looked at")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has no sandbox for the superuser
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=program, args=root)
        yield found
        found.close()


SHAPES = """() => [...document.querySelectorAll("figure svg")].map(svg => ({
    shapes: [...svg.querySelectorAll("path, use")].filter(e => {
        const box = e.getBoundingClientRect(); return box.width + box.height > 5 }).length,
    texts: [...svg.querySelectorAll("text")].map(e => e.textContent.trim()).filter(Boolean),
    letters: Math.min(...[...svg.querySelectorAll("text")].map(e => e.getBoundingClientRect().height)),
    width: svg.getBoundingClientRect().width, height: svg.getBoundingClientRect().height}))"""
CELLS = """([table, column]) => [...document.querySelectorAll(table + " tbody tr")].map(
    row => row.cells[column].dataset.value)"""


def look(browser: Any, file: Path, *, width: int = 1280, scheme: str = "light") -> dict[str, Any]:
    """Open a page, sort its tables, and say what there was to see."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    sorts = []
    for table, column in (
        ("#verdicts", 2),
        ("#verdicts", 0),
        (".worst", 3),
        (".worst", 1),
        ("#distributions", 4),
    ):
        button = page.locator(f"{table} thead th").nth(column).locator("button")
        orders = []
        for _ in range(2):
            button.first.click()
            orders.append(page.evaluate(CELLS, [table, column]))
        sorts.append(orders)
    seen = {
        "said": said,
        "asked": asked,
        "shapes": page.evaluate(SHAPES),
        "sorts": sorts,
        "rows": page.evaluate("[...document.querySelectorAll('tbody')].map(body => body.rows.length)"),
        "too wide": page.evaluate("document.documentElement.scrollWidth - window.innerWidth"),
        "paper": page.evaluate("getComputedStyle(document.body).backgroundColor"),
        "line": page.evaluate(
            "(line => line && getComputedStyle(line).stroke)(document.querySelector('.legend path[style*=series]'))"
        ),
    }
    context.close()
    return seen


def check(seen: dict[str, Any], file: Path) -> None:
    """No errors, no requests, plots and tables with something in them, sorting that sorts, nothing cut off."""
    assert seen["said"] == []
    assert seen["asked"] == [file.as_uri()]
    assert len(seen["shapes"]) == 4
    for plot in seen["shapes"]:
        assert plot["shapes"] >= 8
        assert {"0.0", "1.0"} <= set(plot["texts"])
        assert plot["width"] > 250
        assert plot["height"] > 150
        assert plot["letters"] > 8  # pixels
    assert len(seen["rows"]) == 4
    assert min(seen["rows"]) >= 3
    for falling, rising in seen["sorts"]:
        assert len(set(falling)) > 1
        try:
            assert [float(value) for value in falling] == sorted(map(float, falling), reverse=True)
            assert [float(value) for value in rising] == sorted(map(float, rising))
        except ValueError:
            assert sorted(falling) == sorted(rising)
            assert falling[0] >= falling[-1]
            assert rising[0] <= rising[-1]
    assert seen["too wide"] <= 0


def test_the_page_in_a_browser(browser: Any, html: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html)
    papers, lines = set(), set()
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            seen = look(browser, file, width=width, scheme=scheme)
            check(seen, file)
            papers.add(seen["paper"])
            lines.add(seen["line"])
    assert (len(papers), len(lines)) == (2, 2)  # light and dark, plots included


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</body>", "<img src='https://example.invalid/x.png'></body>"),
        ("const way =", "console.error('no'); const way ="),
        ("const way =", "missing(); const way ="),
        ("return way ===", "return 0; return way ==="),
        ("order : -order", "order : order"),
        ("x.localeCompare(y) : x - y", "x.localeCompare(y) : String(x).localeCompare(y)"),
        ("<figure><svg", "<figure><svg style='display:none'"),
        ("<path", "<g"),
        ("<h1>", "<h1 style='width:3000px'>"),
        ("<tbody>\n<tr>", "<tbody hidden></tbody><tbody>\n<tr>"),
    ],
)
def test_the_check_sees_a_page_that_is_broken(
    browser: Any, html: str, tmp_path: Path, old: str, new: str
) -> None:
    assert old in html
    broken = html.replace(old, new)
    # The script changed, so its hash in the policy is changed with it: the fault itself must be seen.
    broken = re.sub(r"script-src 'sha256-[^']+'", "script-src 'unsafe-inline'", broken)
    file = tmp_path / "report.html"
    file.write_text(broken)
    with pytest.raises(AssertionError):
        check(look(browser, file), file)


def test_the_policy_lets_no_other_script_run(browser: Any, html: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html.replace("</body>", "<script>document.title = 'changed'</script></body>"))
    seen = look(browser, file)
    assert any("Content Security Policy" in text for text in seen["said"])


def test_rows_of_a_large_run_do_not_make_a_large_page(wide: Path, html: str, tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", positions=160, per_shard=80)
    audited(store, tmp_path / "run", Plan(("resispec", "specinfer", "shaped"), 3))
    assert len(rows(tmp_path / "run")) == 480
    # Curves and points have four times the steps until their limits (400 and 1500); tables stay as they are.
    assert len(render(Run.open(tmp_path / "run"))[0]) < 4 * len(html)
