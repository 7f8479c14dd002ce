"""Documents whose commands are run and whose numbers are compared with what the commands print.

A ``console`` block is one ``$ command`` with its output. A ``python`` block is run as it stands; the ``text``
block after it is its output. A ``py`` block is a file of tests, which must pass; without a test it is code that cannot
run here, of which the names it imports from this package are checked. A ``yaml`` block is a workflow, whose
``resispec`` steps must succeed. In the prose of a section every fraction and decimal must be a number that the
section's own commands take or print (decimals rounded to the digits shown).

Run as a script it writes the outputs anew: ``python tests/cli/documents.py docs/findings.md README.md``.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import math
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\w)")
PROSE_NUMBER = re.compile(r"(?<![\w./:])(?:\d+/\d+|\d+\.\d+)(?![\w./]*\w)")
ROUNDING = 1e-9
"""Numbers below it are rounding of sums that are exactly zero: their digits differ between machines."""
Shell = Callable[[list[str]], str]


class Step(NamedTuple):
    """Something a document runs, and what it says the output is."""

    source: str
    expected: str


def sections(text: str) -> Iterator[tuple[str, str]]:
    """(title, body) of every ``##`` section."""
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        yield title.strip(), body


def steps(body: str) -> list[Step]:
    """The commands and programs of a section, in order."""
    found: list[Step] = []
    program = None
    for language, content in FENCE.findall(body):
        if language == "console":
            command, _, output = content.partition("\n")
            assert command.startswith("$ "), f"a console block starts with a command, not {command!r}"
            found.append(Step(command, output))
        elif language == "python":
            program = content
        elif language == "text" and program is not None:
            found.append(Step(program, content))
            program = None
    assert program is None, "a python block has no text block with its output after it"
    return found


def blocks(text: str, language: str) -> list[str]:
    """The contents of every block in ``language``."""
    return [content for name, content in FENCE.findall(text) if name == language]


def missing_imports(program: str) -> list[str]:
    """What ``program`` imports from this package that is not there."""
    missing = []
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("resispec_core"):
            try:
                module = importlib.import_module(str(node.module))
            except ImportError:
                missing.append(str(node.module))
                continue
            missing += [f"{node.module}.{name.name}" for name in node.names if not hasattr(module, name.name)]
    return missing


def indented_commands(text: str) -> list[list[str]]:
    """The words of the ``resispec`` commands in indented blocks, which are shown without their output."""
    whole = re.sub(r"\\\n\s*", "", FENCE.sub("", text))  # a command may go on on the next line
    lines = re.findall(r"^ {4,}(resispec .*?)(?: {2,}#.*)?$", whole, flags=re.MULTILINE)
    return [shlex.split(line) for line in lines]


def workflow_commands(text: str) -> list[list[str]]:
    """The words of every ``resispec`` step of a GitHub workflow."""
    jobs = yaml.safe_load(text)["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    return [shlex.split(run) for run in runs if run.startswith("resispec ")]


def output_of(step: Step, shell: Shell) -> str:
    """Run a step. ``shell`` gets the words of a command."""
    if step.source.startswith("$ "):
        return shell(shlex.split(step.source.removeprefix("$ ")))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(step.source, "<document>", "exec"), {"__name__": "document"})
    return printed.getvalue()


def difference(expected: str, actual: str) -> str | None:
    """Where two outputs part; None where they agree.

    Layout is ignored. Integers and fractions agree when equal, decimals to 2 in 1000 (the output has four
    digits, the last of which may round either way), and rounding with rounding.
    """
    shown, printed = words(expected), words(actual)
    if len(shown) != len(printed):
        return f"{len(shown)} words are shown, {len(printed)} printed:\n{actual}"
    for place, (one, other) in enumerate(zip(shown, printed, strict=True)):
        if not same_word(one, other):
            return (
                f"{' '.join(shown[max(0, place - 4) : place + 1])!r} is shown, {other!r} printed:\n{actual}"
            )
    return None


def words(text: str) -> list[str]:
    """Numbers, and the runs of other characters between them, without white space."""
    return [word for part in text.split() for word in re.split(f"({NUMBER.pattern})", part) if word]


def same_word(one: str, other: str) -> bool:
    if not (NUMBER.fullmatch(one) and NUMBER.fullmatch(other)):
        return one == other
    if one.isdigit() and other.isdigit():
        return one == other
    a, b = float(one), float(other)
    return max(a, b) < ROUNDING or math.isclose(a, b, rel_tol=2e-3)


def prose(body: str) -> str:
    """A section without its blocks and without the targets of its links."""
    return re.sub(r"\]\([^)]*\)", "]", FENCE.sub("", body))


def unsupported(body: str, outputs: list[str]) -> list[str]:
    """Numbers in the prose that no command of the section takes or prints."""
    ran = "\n".join([step.source for step in steps(body)] + outputs)
    known = [float(number) for number in re.findall(r"\d+\.\d+(?:e[+-]?\d+)?", ran)]

    def supported(number: str) -> bool:
        if "/" in number:
            return re.search(rf"(?<![\d/]){number}(?![\d/])", ran) is not None
        places = len(number.partition(".")[2])
        return any(abs(float(number) - value) <= 0.501 * 10**-places for value in known)

    return [number for number in PROSE_NUMBER.findall(prose(body)) if not supported(number)]


def refreshed(text: str, shell: Shell) -> str:
    """The document with every output as printed now."""
    program: list[str] = []

    def renew(match: re.Match[str]) -> str:
        language, content = match.groups()
        if language == "console":
            command = content.partition("\n")[0]
            return f"```console\n{command}\n{tidy(output_of(Step(command, ''), shell))}```"
        if language == "python":
            program[:] = [content]
        elif language == "text" and program:
            return f"```text\n{tidy(output_of(Step(program.pop(), ''), shell))}```"
        return match.group(0)

    return FENCE.sub(renew, text)


def tidy(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.splitlines()) + "\n"


def needs_examples(arguments: list[str]) -> bool:
    """Whether a command names a callable of ``docs/examples``, or a file or folder that an earlier command wrote."""
    return any(re.search(r"\w:\w|^(replay|report|diff|--out)$", word) for word in arguments)


def main(files: list[Any]) -> None:
    from cli_cases import run_process

    examples = Path(__file__).parents[2] / "docs" / "examples"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(examples, folder, dirs_exist_ok=True)

        def shell(arguments: list[str]) -> str:
            assert arguments[0] == "resispec"
            return run_process(*arguments[1:], cwd=folder).out

        for name in files:
            file = Path(name)
            file.write_text(refreshed(file.read_text(), shell))


if __name__ == "__main__":
    main(sys.argv[1:])
