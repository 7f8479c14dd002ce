"""A ``numpy.random.Generator`` whose draws Hypothesis chooses: every coin that can fall, the nastiest ones first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar

from hypothesis import strategies as st

from resispec_core.audit.replay import draws
from resispec_core.audit.replay.grid import Grid
from resispec_core.audit.replay.numpy_source import ForkGenerator
from resispec_core.audit.replay.trail import RefusalError


class Chosen:
    """Answers draws with examples of ``data``, as ``draws.Concrete`` does with those of an explored path."""

    fault: RefusalError | None = None
    limit: ClassVar[str] = "Hypothesis does not choose it"

    def __init__(self, data: Any) -> None:
        self._data = data

    def uniform(self, grid: Grid) -> float:
        """A coin on the generator's real grid: 0, the least above it, 1/2 and the largest below 1 first."""
        top = grid.size
        place = st.one_of(st.sampled_from([0, 1, top // 2, top - 1]), st.integers(0, top - 1))
        return float(self._data.draw(place, label="coin")) / top

    def noise(self, grid: Grid) -> float:
        """A coin in (0, 1], for a logarithm."""
        return 1.0 - self.uniform(grid)

    def index(self, weights: Sequence[Any], label: str) -> int:
        """Any index of positive weight."""
        live = [place for place, weight in enumerate(weights) if weight > 0]
        return live[self.below(len(live), label)]

    def below(self, count: int, label: str) -> int:
        """Any integer in [0, count)."""
        return int(self._data.draw(st.integers(0, count - 1), label=label))

    def refuse(self, error: RefusalError) -> RefusalError:
        """The error, to be raised."""
        return error


class ChosenGenerator(ForkGenerator):
    """The generator of the replay, with draws that are examples of ``data``. Uniforms lie on the generator's real grid;
    a token is any of positive weight. So a property that holds under it holds for every outcome; frequencies mean
    nothing. What the replay refuses is refused here, by name.
    """

    def __init__(self, data: Any) -> None:
        super().__init__()
        self._source = Chosen(data)

    def __repr__(self) -> str:
        return "ChosenGenerator()"


def _chosen(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def answered(self: ChosenGenerator, *args: Any, **kwargs: Any) -> Any:
        with draws.answering(self._source):
            return method(self, *args, **kwargs)

    return answered


for _name, _method in vars(ForkGenerator).items():
    if not _name.startswith("_"):
        _getter: Any = getattr(_method, "fget", None)
        _answer: Any = _chosen(_method) if _getter is None else property(_chosen(_getter))
        setattr(ChosenGenerator, _name, _answer)


@st.composite
def generators(draw: st.DrawFn) -> ChosenGenerator:
    """NumPy generators that return whatever Hypothesis chooses (see ``ChosenGenerator``)."""
    return ChosenGenerator(draw(st.data()))
