"""Gaps of one window solved in turn: each in the text up to the next one, which is made to end there.

In a joint check an unsolved gap spoils the verdict on its neighbours, and a search that moves on past a fill that was
right does not come back to it. Cut off in front of the next gap, with all that is open there closed, the text tells
whether this gap's fill is right whatever the next one will hold.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from lacuna_model.syntax.balance import Balance
from lacuna_model.syntax.beam import Effort, joint_search
from lacuna_model.syntax.candidates import Candidates
from lacuna_model.syntax.closing import Closer
from lacuna_model.syntax.document import Check, Document, nearest
from lacuna_model.syntax.draft import Fill
from lacuna_model.syntax.error_set import Fault
from lacuna_model.syntax.window import Window

ENDINGS = 3
# For each gap and each ending a few guesses, and what the grammar is searched for.
TURN_VERIFIES = 40
TURN_SECONDS = 0.012
JUNCTION_VERIFIES = 48
JUNCTION_SECONDS = 0.6

# Candidates of a gap, with the completions that it has for itself or else with these.
Queue = Callable[[int, Callable[[], Closer] | None], Candidates]


class _Head:
    """Checks the first gaps of a window against the text up to the next one, and endings put there."""

    def __init__(self, window: Window, endings: Callable[[tuple[bytes, ...]], Iterable[tuple[bytes, ...]]]) -> None:
        self._window = window
        self._endings = endings

    def recall(self, texts: tuple[bytes, ...]) -> Check | None:
        """Nothing is remembered: no fill comes twice."""
        return None

    def check(self, texts: tuple[bytes, ...], *, thorough: bool) -> Check:
        """A parse for each ending, up to one that is valid; the gaps are counted from the window's first."""
        found = Check(tuple((gap, 0) for gap in range(len(texts))))
        for ending in self._endings(texts):
            outcome = self._window.parse(texts + ending)
            if outcome is not None:
                found = self._check(texts, ending, outcome[1])
            if found.valid or self._window.clock.over:
                break
        return found

    def _check(self, texts: tuple[bytes, ...], ending: tuple[bytes, ...], faults: frozenset[Fault]) -> Check:
        places = nearest(self._window, texts + ending, faults)
        last = len(texts) - 1  # what is wrong at the ending is wrong behind the last fill
        own = ((gap - self._window.extent.first, offset) for gap, offset in places)
        return Check(tuple((gap, offset) if gap <= last else (last, len(texts[last])) for gap, offset in own))


def solve_windows(document: Document | None, held: list[Fill | None], queue: Queue, *, by_grammar: bool = True) -> None:
    """Fills the gaps of each window where one of them holds nothing, in turn.

    What a gap may hold that finds no other fill the grammar may be searched for.
    """
    if document is None:
        return
    for window in document.windows:
        if None in [held[gap] for gap in window.gaps]:
            balance, first = document.balance(window.gaps.start)
            solved = _solve_in_turn(balance, first, window, queue, by_grammar=by_grammar)
            if solved is not None:
                held[window.gaps.start : window.gaps.stop] = solved


def _solve_in_turn(
    balance: Balance, first: int, window: Window, queue: Queue, *, by_grammar: bool
) -> list[Fill] | None:
    """Fills for all gaps of a window that are valid together; None where one of them finds none.

    The window's gaps are those of the balance from the ``first`` on.
    """
    solved = window.left_off if by_grammar else []
    for count, gap in list(enumerate(window.gaps))[len(solved) :]:
        # what the gaps before hold is text like any other, and tells what this one and its ending have to close
        beside = balance.filled(first, [fill.text for fill in solved])
        closer = partial(_closer, beside, first) if solved else None
        for head in _heads(beside, first, window, count + 1):
            effort = Effort(TURN_VERIFIES, TURN_SECONDS, window.clock)
            found = joint_search({count: queue(gap, closer)}, [*solved, None], head, effort).whole
            if found is not None:
                break
        else:
            found = _join(beside, first, window, solved, queue) if by_grammar else None
            if found is None:
                window.left_off = solved if by_grammar and window.clock.over else []
                return None
        solved = found
    window.left_off = []
    return solved


def _closer(balance: Balance, place: int) -> Closer:
    return Closer(balance.sides(place))


def _join(balance: Balance, place: int, window: Window, solved: Sequence[Fill], queue: Queue) -> list[Fill] | None:
    """The same fills and one for the next gap, by the grammar; None where there is none."""
    count = len(solved)
    junction = window.junction(balance.sides(place), [fill.text for fill in solved])
    if junction is None:
        return None
    head = _joined_head(balance, place, window, count + 1)
    candidates = queue(window.gaps[count], lambda: junction)
    effort = Effort(JUNCTION_VERIFIES, JUNCTION_SECONDS, window.clock)
    return joint_search({count: candidates}, [*solved, None], head, effort).whole


def _always(ending: tuple[bytes, ...], _texts: tuple[bytes, ...]) -> list[tuple[bytes, ...]]:
    return [ending]


def _heads(balance: Balance, place: int, window: Window, count: int) -> Iterator[_Head]:
    if count == len(window.gaps):
        yield _Head(window, partial(_always, ()))
        return
    head = window.head(count)
    for ending in islice(Closer(balance.ending(place + 1)).completions(b""), ENDINGS):
        yield _Head(head, partial(_always, (ending,)))


def _joined_head(balance: Balance, place: int, window: Window, count: int) -> _Head:
    """A head whose endings the grammar knows; there is none where the text up to the next gap cannot be read."""
    if count == len(window.gaps):
        return _Head(window, partial(_always, ()))

    def endings(texts: tuple[bytes, ...]) -> Iterator[tuple[bytes, ...]]:
        junction = window.junction(balance.ending(place + 1), texts)
        found = islice(junction.completions(b""), ENDINGS) if junction is not None else ()
        yield from ((text,) for text in found)

    return _Head(window.head(count), endings)
