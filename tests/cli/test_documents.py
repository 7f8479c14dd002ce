"""README.md and pages of docs/: their commands run, and print what the documents say."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import documents
import pytest
from cli_cases import Result, environment

from resispec_core.cli.main import group

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("proofs/**/*.md")))
}
RUN = {"console", "python", "py", "yaml"}
SHOWN = {"text", "sh", "", "{toctree}", "{include}"}
"""Languages of blocks that are not run: outputs, the README's two commands (tested below), directives of the site."""
SECTIONS = [
    pytest.param(body, id=f"{name}: {title}")
    for name, text in PAGES.items()
    for title, body in documents.sections(text)
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


TEST_FILES = [
    pytest.param(block, id=f"{name}: {place}")
    for name, text in PAGES.items()
    for place, block in enumerate(documents.blocks(text, "py"))
    if "def test_" in block
]


def run_tests(block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block as a file of tests beside a copy of docs/examples."""
    shutil.copytree(ROOT / "docs" / "examples", folder, dirs_exist_ok=True)
    (folder / "test_of_the_page.py").write_text(block)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder))
    fixed = environment() | {"CI": "true"}  # Hypothesis then draws the same examples every time
    return subprocess.run(command, cwd=folder, env=fixed, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("block", TEST_FILES)
def test_a_test_shown_on_a_page_passes(block: str, tmp_path: Path) -> None:
    done = run_tests(block, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "1 passed" in done.stdout


def test_code_that_is_only_shown_names_what_exists() -> None:
    shown = [block for text in PAGES.values() for block in documents.blocks(text, "py")]
    assert [fault for block in shown for fault in documents.missing_imports(block)] == []
    wrong = "from resispec_core.audits import audit\nfrom resispec_core import audit, autid\nfrom torch import nothing"
    assert documents.missing_imports(wrong) == ["resispec_core.audits", "resispec_core.autid"]


@pytest.mark.parametrize("name", [name for name, text in PAGES.items() if documents.blocks(text, "yaml")])
def test_the_steps_of_a_workflow_succeed(
    name: str, run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples"))
    for block in documents.blocks(PAGES[name], "yaml"):
        commands = documents.workflow_commands(block)
        assert commands
        for words in commands:
            assert run(*words[1:]).code == 0, words


def command_faults(words: list[str]) -> list[str]:
    """Commands and options in ``words`` that the program does not have."""
    command = group.commands.get(words[1]) if len(words) > 1 else None
    if command is None:
        return words[:2]
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    return [
        word for word in words if word.startswith("-") and word.partition("=")[0] not in known | {"--help"}
    ]


def test_indented_commands_exist_with_their_options() -> None:
    commands = [words for text in PAGES.values() for words in documents.indented_commands(text)]
    assert len(commands) > 3
    assert [fault for words in commands for fault in command_faults(words)] == []


def test_every_block_is_of_a_known_kind() -> None:
    kinds = {
        (name, kind) for name, text in PAGES.items() for kind in re.findall(r"^```(\S+)", text, re.MULTILINE)
    }
    assert {(name, kind) for name, kind in kinds if kind not in RUN | SHOWN} == set()


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


def test_a_wrong_test_step_or_command_is_caught(tmp_path: Path) -> None:
    (block,) = documents.blocks(PAGES["docs/audit_your_sampler.md"], "py")[:1]
    done = run_tests(block.replace("import right", "import verify as right"), tmp_path)
    assert done.returncode == 1
    assert "BIASED" in done.stdout
    text = "    resispec record OUT --skip-layer 3   # one\n    resispec rekord OUT\n"
    assert [command_faults(words) for words in documents.indented_commands(text)] == [
        ["--skip-layer"],
        ["resispec", "rekord"],
    ]
    (workflow,) = documents.blocks(PAGES["docs/audit_your_sampler.md"], "yaml")
    assert documents.workflow_commands(workflow) == [["resispec", "audit", "mypackage.sampler:right"]]


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
