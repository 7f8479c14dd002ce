"""The texts to record over, and the positions in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from resispec_core.errors import InputError


@dataclass(frozen=True)
class Prompt:
    """A named text."""

    name: str
    text: str


_PROSE = """\
The ferry left the harbour a little before six, while the lamps along the quay were still lit. Marta \
stood at the rail with her coat buttoned to the chin and watched the town grow small: first the church \
tower, then the long roof of the cannery, and at last only the hill with its two bare trees. Nobody on \
deck spoke. A boy slept on a coil of rope, and beside him an old man was peeling an orange with great \
care, as if the whole crossing depended on keeping the peel in one piece. When the engine changed its \
note, she knew they had passed the breakwater and that it was too late to turn back."""

_CODE = '''\
from collections import Counter


def longest_run(values):
    """Return the value with the longest unbroken run, and the length of that run."""
    best_value, best_length = None, 0
    current, length = None, 0
    for value in values:
        if value == current:
            length += 1
        else:
            current, length = value, 1
        if length > best_length:
            best_value, best_length = current, length
    return best_value, best_length


if __name__ == "__main__":
    data = [3, 3, 1, 1, 1, 2]
    print(longest_run(data))
    for value, count in Counter(data).most_common():
        print(f"{value}: {count}")
'''

_LIST = """\
Packing list for a week in the mountains

1. Two pairs of trousers, one of them waterproof
2. Four shirts and a warm jumper
3. A sleeping bag rated to minus five degrees
4. Map, compass, and a spare set of batteries for the torch
5. Water bottle (one litre) and purification tablets
6. Food:
   - oats, raisins and powdered milk for breakfast
   - bread, hard cheese and apples for lunch
   - rice, lentils and dried vegetables for dinner
7. First-aid kit with plasters, bandages and painkillers
8. Sunscreen, a hat, and sunglasses
"""

_DIALOGUE = """\
"You said the shop closes at seven," Ines whispered.

"It usually does," said Tomas. "Perhaps the owner is counting the till."

"With the lights off?"

He tried the handle. The door opened without a sound, and a bell that should have rung stayed silent \
above them.

"I don't like this," she said. "Let's call somebody."

"Who would we call? It's a bakery, not a bank."

"Then why," asked a voice from behind the counter, "are you two whispering?"

Tomas jumped so hard that he knocked over a basket of rolls. "We were only looking for a birthday cake," \
he said at last. "It's for our daughter. She will be nine tomorrow."
"""

BUILT_IN = (
    Prompt("prose", _PROSE),
    Prompt("code", _CODE),
    Prompt("list", _LIST),
    Prompt("dialogue", _DIALOGUE),
)
"""Four short texts of different kinds, written for this project."""


_STARTS = (
    ("bridge", "The old stone bridge was closed to carts in spring, because the river had"),
    ("tea", "To make a good pot of tea, first bring fresh water to the boil. Then"),
    ("planets", "The planets of the solar system, in order of their distance from the sun, are"),
    ("letter", "Dear Ms Okafor,\n\nThank you for your letter of 3 March. I am writing to"),
    ("factorial", 'def factorial(n):\n    """Return n! for a non-negative integer n."""\n'),
    ("query", "SELECT name, COUNT(*) AS orders\nFROM customers\nJOIN orders ON"),
    ("fox", "Once upon a time a fox lived at the edge of a dark forest. Every evening she"),
    ("bread", "Ingredients for two loaves of bread:\n- 1 kg of flour\n- "),
    ("light", "Light travels faster than sound. That is why, in a thunderstorm, we"),
    ("minutes", "Minutes of the meeting of the garden club\n\nPresent: A. Brown, L. Novak, "),
    ("question", "Question: Why do leaves change their colour in autumn?\nAnswer:"),
    ("market", "On Saturday the market square was full of people. The baker shouted that"),
    ("loop", "for (int i = 0; i < n; i++) {\n    sum +="),
    ("doctor", '"How long have you had this cough?" the doctor asked. "About'),
    ("history", "The printing press changed Europe in the fifteenth century. Before it,"),
    ("directions", "From the station, walk straight on until you reach the church. Turn left and"),
    ("sum", "If a train travels 60 kilometres in 45 minutes, its average speed is"),
    ("weather", "Tomorrow will be mostly cloudy with some rain in the north. Temperatures will"),
    ("review", "I bought this lamp two months ago and I am very happy with it. The light is"),
    ("capital", "The capital of Italy is Rome, the capital of Spain is Madrid, the capital of"),
    ("photosynthesis", "Photosynthesis is the process by which green plants"),
    ("chess", "In chess, the bishop moves along the diagonals, while the rook"),
    ("lighthouse", "The keeper of the lighthouse climbed the stairs slowly. At the top he"),
    ("json", '{\n  "name": "resistor",\n  "value": 470,\n  "unit":'),
)
STARTS = tuple(Prompt(name, text) for name, text in _STARTS)
"""Twenty-four short beginnings to continue, written for this project; none is part of ``BUILT_IN``."""


def read_prompts(file: str | Path) -> tuple[Prompt, ...]:
    """Read prompts: a JSON object a line in ``*.jsonl`` ("text", perhaps "name"), else the file is one text.

    Raises InputError: the file cannot be read, is not UTF-8, has a bad line (named), or no text.
    """
    path = Path(file)
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"cannot read prompts from {path}: {error.strerror or error}") from error
    if path.suffix == ".jsonl":
        lines = [(number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip()]
        prompts = tuple(_from_line(path, number, line) for number, line in lines)
    else:
        prompts = (Prompt(path.stem, content),) if content.strip() else ()
    if not prompts:
        raise InputError(
            f'{path} holds no text; pass a text file, or a .jsonl file with one {{"text": …}} a line'
        )
    return prompts


def _from_line(path: Path, number: int, line: str) -> Prompt:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path} line {number} is not JSON: {error}") from error
    text = entry.get("text") if isinstance(entry, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f'{path} line {number} has no text: write {{"text": "…"}}, with a "name" if you like'
        )
    name = entry.get("name", f"{path.stem}-{number}")
    if not isinstance(name, str):
        raise InputError(f"{path} line {number}: name is {name!r}; make it a string")
    return Prompt(name, text)


def spread_indices(length: int, count: int) -> list[int]:
    """Choose ``count`` token indices out of 1..length-1, each in the middle of an equal stretch.

    Index 0 is left out, since a row needs a token before it. Raises InputError when there are too few
    tokens.
    """
    if count < 1:
        raise InputError(f"positions per prompt is {count}; pass at least 1")
    if length - 1 < count:
        raise InputError(
            f"it has {length} tokens, too few for {count} positions; pass at most {max(length - 1, 0)}"
        )
    return [1 + ((2 * k + 1) * (length - 1)) // (2 * count) for k in range(count)]
