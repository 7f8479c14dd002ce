"""Write docs/faults.md: which engine caught which published fault, and at what cost."""

from pathlib import Path

from museum import EXHIBITS, NOT_REPRODUCIBLE

HEADER = """# The fault museum

Published faults of speculative sampling, each rebuilt in a few lines in `tests/meta/faults/museum.py` and shown to an
unmodified engine of the suite. *Flagged* is what the engine said; controls are exact rules that were once reported as
biased and must not be flagged. *TV* is the total variation found, where the engine computes a law. The cost counts
replayed paths, kernel calls or checks, and does not depend on the machine.

This file is generated: `python tests/meta/faults/write_table.py`.

| Case | What was wrong | Kind | Engine | Flagged | TV | Cost |
|---|---|---|---|---|---|---|
"""


def table() -> str:
    """The whole page."""
    lines = []
    for exhibit in EXHIBITS:
        seen = exhibit.look()
        size = "" if seen.size is None else f"{seen.size:.4g}"
        if exhibit.control and seen.size is None:
            size = "0"
        if exhibit.control and seen.size is not None:
            size = f"≤ {max(seen.size, 1e-15):.0e}"
        flagged = "yes" if seen.flagged else "no (control)"
        cells = (
            f"[{exhibit.name}]({exhibit.url})",
            exhibit.title,
            exhibit.kind,
            seen.engine,
            flagged,
            size,
            seen.cost,
        )
        lines.append("| " + " | ".join(cells) + " |")
    left = "\n".join(f"- {name}: {why}." for name, why in NOT_REPRODUCIBLE.items())
    return (
        HEADER
        + "\n".join(lines)
        + f"\n\nCases of the collection that no verifier's law can show:\n\n{left}\n"
    )


if __name__ == "__main__":
    page = Path(__file__).parents[3] / "docs" / "faults.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(table(), encoding="utf-8")
    print(f"{page.name}: {len(EXHIBITS)} exhibits")
