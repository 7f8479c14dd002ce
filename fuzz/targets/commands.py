"""The command line: any argument list ends with a documented exit code, and no traceback.

Runs in this process, in a scratch folder with a small store (which also stands in for the shipped one, so that a case
takes milliseconds). Left out on purpose: samplers other than those written here, since ``module:name`` runs any code;
the model that ``record`` loads by default; the long timings of ``speed``; and ``fuzz`` itself.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest import mock

from hypothesis import strategies as st

from fuzz.target import Case, Target
from resispec_core.audit.counterexample import Counterexample
from resispec_core.cli import audit as audit_command
from resispec_core.cli import compare as compare_command
from resispec_core.cli import info as info_command
from resispec_core.cli.main import main
from resispec_core.drafts import DRAW_MODES
from resispec_core.llama.store import LogitsStore
from resispec_core.rules import RULES

EXIT_CODES = (0, 1, 2, 3, 130, 141)
COMMANDS = {
    "audit": ["--signature", "--horizon", "--library", "--precision", "--coins", "--write", "--package", "--rule",
              "--redistribution", "--budget", "-n", "--candidates", "--draw", "--mismatched", "--logits", "--target",
              "--draft", "--temperature", "--top-k", "--top-p", "--min-p"],
    "compare": ["--rule", "-n", "--candidates", "--temperature", "--logits", "--plot"],
    "replay": ["--callable"],
    "rules": [],
    "record": ["--target", "--draft", "--skip-layers", "--prompts", "--positions-per-prompt", "--rows-per-shard",
               "--dtype", "--device"],
    "info": ["--verify"],
    "speed": ["--out"],
}  # fmt: skip
# fmt: off
LAWS = ("1/3,1/3,1/3", "1/2,2/5,1/10", "0.5,0.5", "1", "0,1", "1/2,1/2", "2/3,1/3", "nan,1", "1e-400,1", "1/0,1",
        "-1,2", ",")
NUMBERS = ("-3", "0", "1", "2", "3", "5", "0.5", "1e3", "nan", "inf", "-inf", "x", "", "1.0", "0x2", "²")
FILES = ("store", "broken", "missing", "file", "case.json", "bad.json", "out", ".", "..", "/", "~", "good.py",
         "plot.svg", "plot.pdf", "plot.xyz")
SAMPLERS = ("good.py:verify", "good.py:raises", "good.py:wrong", "good.py:missing", "missing.py:f", "good.py:NUMBER",
            "broken.py:f", ":", "good.py:")  # fmt: skip
WORDS = ("iid", "top-k", "numpy", "torch", "float32", "float16", "float64", "verify", "step", "kernel", "eq13",
         "flashspec", "economize", "mini-infer", "-h", "--json", "--", "-", "--help", "--version", "12-17",
         "cpu")
# fmt: on
SOURCES = {
    "good.py": """
NUMBER = 3

def verify(target, draft, candidates, rng):
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
    return rng.choice(len(target), p=target)

def raises(target, draft, candidates, rng):
    raise RuntimeError("boom")

def wrong(target, draft, candidates, rng):
    return "token"
""",
    "broken.py": "raise ValueError('boom')\n",
    "file": "x",
    "bad.json": '{"schema": "resispec-counterexample"',
}
TEXT = st.text(
    st.one_of(
        st.characters(exclude_characters="\0:", exclude_categories=["Cs"]),
        st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"]),
    ),
    max_size=6,
)
"""What a shell can pass: no NUL, and of the surrogates only those that stand for undecodable bytes."""
VALUES = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(LAWS), st.sampled_from(FILES), st.sampled_from(WORDS),
    st.sampled_from([*RULES, *DRAW_MODES, "resispecs"]), st.sampled_from(SAMPLERS), TEXT,
)  # fmt: skip
FITTING = {
    "--rule": st.sampled_from([*RULES, "resispecs"]),
    "--draw": st.sampled_from([*DRAW_MODES, "sorted"]),
    "--target": st.sampled_from(LAWS),
    "--draft": st.sampled_from(LAWS),
    "--logits": st.sampled_from(FILES),
    "-n": st.sampled_from(["1", "2", "3", "0"]),
    "--redistribution": st.sampled_from(["proportional", "waterfill", "uniform", "even"]),
    "--budget": st.sampled_from(["local", "eq13", "big"]),
}
FLAGS = {"--mismatched", "--verify"}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A command, options with values that may fit, and now and then anything anywhere."""
    command = draw(st.sampled_from(list(COMMANDS)))
    words = [command]
    if command == "audit" and draw(st.booleans()):
        words += ["--target", draw(FITTING["--target"]), "--draft", draw(FITTING["--draft"])]
    for _ in range(draw(st.integers(0, 4))):
        if not COMMANDS[command]:
            break
        option = draw(st.sampled_from(COMMANDS[command]))
        words.append(option)
        if option not in FLAGS or draw(st.integers(0, 9)) == 0:
            words.append(draw(FITTING[option] if option in FITTING and draw(st.booleans()) else VALUES))
    if command in ("audit", "replay", "record", "info") and draw(st.booleans()):
        words.append(draw(st.one_of(st.sampled_from(FILES + SAMPLERS), TEXT)))
    words += ["--json"] * draw(st.integers(0, 1))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(words)))
        words[place : place + draw(st.integers(0, 1))] = [draw(VALUES)]
    return {"arguments": words}


def check(case: Case) -> None:
    """One run in a scratch folder."""
    arguments = case["arguments"]
    if "record" in arguments:
        arguments = [*arguments, "--target", "nowhere.gguf"]
    with tempfile.TemporaryDirectory(prefix="resispec-fuzz-command-") as scratch:
        folder = Path(scratch) / "here"
        shutil.copytree(furnished(), folder)
        run(arguments, folder)


@cache
def furnished() -> Path:
    """A folder with the files that FILES and SAMPLERS name, written once a process."""
    from fuzz.targets.files import write_store

    folder = Path(tempfile.mkdtemp(prefix="resispec-fuzz-files-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    write_store(folder / "store")
    (next(iter(write_store(folder / "broken").glob("*.safetensors")))).write_bytes(b"\0" * 40)
    Counterexample("rule", "resispec", ["1/3"] * 3, ["1/2", "2/5", "1/10"], {"candidates": 1}).save(
        folder / "case.json"
    )
    return folder


def run(arguments: list[str], folder: Path) -> int:
    """The command in this process with ``folder`` as its working directory: the exit code, checked."""
    with inside(folder) as (out, err):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code
        else:
            raise AssertionError("main returned instead of exiting")
        sys.stdout.flush()
        sys.stderr.flush()
        printed, complaint = out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace")
    assert code in EXIT_CODES, f"exit code {code!r} is not documented"
    assert "Traceback" not in complaint, f"a traceback: {complaint[-300:]}"
    if code == 2:
        said = re.search(r"^resispec: \S", complaint, re.MULTILINE)
        assert said, f"exit code 2 without a message: {complaint!r:.200}"
    as_json = arguments[-1:] == ["--json"] and not any(word.startswith("-") for word in arguments[-2:-1])
    if as_json and code in (0, 1) and not {"-h", "--help", "--version"} & set(arguments):
        json.loads(printed)
    return int(code or 0)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Working directory, streams with a file descriptor of their own, and the small store for the shipped one."""
    place, modules = os.getcwd(), set(sys.modules)
    out, err = folder / ".stdout", folder / ".stderr"
    shipped = mock.Mock(side_effect=lambda: LogitsStore.open(furnished() / "store"))
    patches = [
        mock.patch.object(module, "sample_store", shipped)
        for module in (audit_command, compare_command, info_command)
    ]
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(path.open("w", encoding="utf-8")) for path in (out, err)]
        stack.enter_context(contextlib.redirect_stdout(streams[0]))
        stack.enter_context(contextlib.redirect_stderr(streams[1]))
        for patch in patches:
            stack.enter_context(patch)
        os.chdir(folder)
        try:
            yield out, err
        finally:
            os.chdir(place)
            for name in set(sys.modules) - modules:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                    del sys.modules[name]


TARGET = Target("commands", cases, check)
