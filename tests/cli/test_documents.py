"""README.md and pages of docs/: their commands run, and print what the documents say."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import documents
import pytest
from cli_cases import Result

ROOT = Path(__file__).parents[2]
FILES = (
    "README.md",
    "docs/findings.md",
    "docs/account.md",
    "docs/audit_your_sampler.md",
    "docs/certified.md",
)
SECTIONS = [
    pytest.param(body, id=f"{name}: {title}")
    for name in FILES
    for title, body in documents.sections((ROOT / name).read_text())
    if documents.steps(body)
]
SMALL = """
The total variation is 17/90, the divergence 0.115 nats.

```console
$ resispec audit --rule resispec --redistribution waterfill --target 1/3,1/3,1/3 --draft 1/2,2/5,1/10
law    (7/18, 7/15, 13/90)
total variation   17/90
KL   0.1152
```
"""


@pytest.fixture
def shell(
    run: Callable[..., Result],
    sample_run: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> documents.Shell:
    """Commands on the shipped logits go to the shared runs; those on a callable run in a copy of docs/examples."""
    examples = shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples")

    def call(words: list[str]) -> str:
        assert words[0] == "resispec"
        if documents.needs_examples(words):
            monkeypatch.chdir(examples)
            return run(*words[1:]).out
        runner = run if "--target" in words else sample_run
        return runner(*words[1:]).out

    return call


@pytest.mark.parametrize("body", SECTIONS)
def test_a_section_prints_what_it_shows(body: str, shell: documents.Shell) -> None:
    outputs = []
    for step in documents.steps(body):
        outputs.append(documents.output_of(step, shell))
        assert documents.difference(step.expected, outputs[-1]) is None, step.source
    assert documents.unsupported(body, outputs) == []


def test_every_section_of_the_findings_has_a_command() -> None:
    for title, body in documents.sections((ROOT / "docs/findings.md").read_text()):
        assert documents.steps(body), title


# The checks themselves, on planted faults.


def test_an_altered_output_is_caught() -> None:
    (step,) = documents.steps(SMALL)
    assert documents.difference(step.expected, step.expected.replace("  ", " ")) is None
    for wrong in (
        step.expected.replace("13/90", "14/90"),
        step.expected.replace("0.1152", "0.1162"),
        step.expected.replace("law", "laws"),
        step.expected + "3\n",
        "",
    ):
        assert documents.difference(wrong, step.expected) is not None


def test_an_altered_number_in_the_prose_is_caught() -> None:
    (step,) = documents.steps(SMALL)
    assert documents.unsupported(SMALL, [step.expected]) == []
    assert documents.unsupported(SMALL.replace("is 17/90", "is 19/90"), [step.expected]) == ["19/90"]
    assert documents.unsupported(SMALL.replace("0.115 ", "0.117 "), [step.expected]) == ["0.117"]


def test_rounding_and_layout_are_no_difference() -> None:
    assert documents.difference("TV 1.37e-16  of 28", "TV   2.9e-17 of 28\n") is None
    assert documents.difference("TV 0.2363", "TV 0.2364") is None
    assert documents.difference("TV 1.37e-16", "TV 1.37e-6") is not None
    assert documents.difference("28 of 28", "28 of 29") is not None


def test_an_altered_program_of_a_document_is_caught() -> None:
    text = "\n```python\nprint(1 / 8)\n```\n\n```text\n0.125\n```\n"
    (step,) = documents.steps(text)
    assert documents.difference(step.expected, documents.output_of(step, lambda _: "")) is None
    (step,) = documents.steps(text.replace("1 / 8", "1 / 7"))
    assert documents.difference(step.expected, documents.output_of(step, lambda _: "")) is not None
    with pytest.raises(AssertionError, match="no text block"):
        documents.steps(text.replace("```text", "```sh"))


def test_the_outputs_can_be_written_anew() -> None:
    stale = SMALL.replace("17/90\nKL", "1/90\nKL")
    assert documents.refreshed(stale, lambda _: documents.steps(SMALL)[0].expected) == SMALL


def test_the_own_rule_of_the_readme_is_short_and_complete() -> None:
    body = dict(documents.sections((ROOT / "README.md").read_text()))["Audit your own rule"]
    (step,) = documents.steps(body)
    assert len([line for line in step.source.splitlines() if line.strip()]) <= 10
    assert step.expected.startswith("BIASED 1/8")


def test_the_commands_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    (tests,) = re.findall(r"<!-- test-command -->\n```sh\n(.*)\n```\n<!-- /test-command -->", text)
    parts = [shlex.split(part) for part in tests.split(" && ")]
    # .ci/run cuts it before the last part, to put the static checks in between.
    assert parts[-1] == [".venv/bin/python", "-m", "pytest"]
    assert parts[0] == ["python3", "-m", "venv", ".venv"]
    assert "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/resispec audit\n" in text
    assert "test-command" in (ROOT / ".ci/run").read_text()


def labels(picture: str) -> list[str]:
    """The texts of an SVG, where they stand aside: layout differs between versions of matplotlib."""
    return sorted(re.findall(r"<text[^>]*>([^<]+)</text>", picture))


def test_the_picture_shows_what_its_program_computes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: the picture cannot be drawn anew")
    program = runpy.run_path(str(ROOT / "docs/pictures/one_rejection.py"))
    program["draw"](tmp_path / "new.svg")
    shown = (ROOT / "docs/pictures/one_rejection.svg").read_text()
    assert labels(shown) == labels((tmp_path / "new.svg").read_text())
    assert {"11/105", "13/282", "7/30", "1801/9870"} <= set(labels(shown))
    assert labels(shown) != labels(shown.replace("11/105", "12/105"))


def test_links_lead_somewhere() -> None:
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md")),
    ):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / name).read_text()):
            if not link.startswith("https://"):
                assert ((ROOT / name).parent / link).exists(), f"{name} links to {link}"
