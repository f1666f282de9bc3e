"""Solves the gaps of one window in turn: each in the text up to the next gap, where the text is made to end.

In a joint check an unsolved gap spoils the verdict on its neighbours, and a search that moves past a valid fill hardly
returns to it. If the text is cut off before the next gap and all open constructs are closed there, a check tells
whether this gap's fill is valid, whatever the next gap will hold.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import NamedTuple

from lacuna_model.syntax.check.document import Check, Document, nearest
from lacuna_model.syntax.check.error_set import Fault
from lacuna_model.syntax.check.windows import Window
from lacuna_model.syntax.completion.grammar_completions import GrammarCompletions
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.search.beam import Effort, joint_search
from lacuna_model.syntax.search.candidates import Candidates
from lacuna_model.syntax.text.balance import Balance, Sides
from lacuna_model.syntax.text.minimal_completions import Closer

ENDINGS = 3
# Budgets of a search in a gap: for guesses, with each ending of the text, and for completions by the grammar.
TURN_VERIFIES = 40
TURN_SECONDS = 0.012
JUNCTION_VERIFIES = 48
JUNCTION_SECONDS = 0.6
MAX_TURNS = 4  # per gap of a window: of 920 searches none succeeded after more than 28 with eight gaps

# Makes the candidates of a gap, with its own completions or with those of the given closer.
Queue = Callable[[int, Callable[[], Closer] | None], Candidates]


class _Head:
    """Checks the first gaps of a window against the text up to the next gap, with endings put there."""

    def __init__(self, window: Window, endings: Callable[[tuple[bytes, ...]], Iterable[tuple[bytes, ...]]]) -> None:
        self._window = window
        self._endings = endings

    def recall(self, texts: tuple[bytes, ...]) -> Check | None:
        """Return None: no result is kept, since no fill comes twice."""
        return None

    def check(self, texts: tuple[bytes, ...], *, thorough: bool) -> Check:
        """Parse the texts with each ending, up to one that is valid; gaps are counted from the window's first."""
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
        last = len(texts) - 1  # a fault in the ending counts at the end of the last fill
        own = ((gap - self._window.extent.first, offset) for gap, offset in places)
        return Check(tuple((gap, offset) if gap <= last else (last, len(texts[last])) for gap, offset in own))


def solve_windows(
    document: Document | None,
    held: list[Fill | None],
    queue: Queue,
    left_off: "dict[tuple[Window, bool], InTurn] | None" = None,
) -> None:
    """Fill the gaps of each window in turn, where one of them holds no fill; put the fills into ``held``.

    ``left_off`` keeps the searches that the clock broke off, and a further call continues them. Without it only guesses
    are tried; with it the grammar is searched too.
    """
    if document is None:
        return
    for window in document.windows:
        if None not in [held[gap] for gap in window.gaps]:
            continue
        balance, first = document.balance(window.gaps.start)
        turns = InTurn(balance, first, window, queue, by_grammar=left_off is not None)
        if left_off is not None:
            turns = left_off.setdefault((window, window.lenient), turns)
        solved = turns.solve()
        if solved is not None:
            held[window.gaps.start : window.gaps.stop] = solved


class _Turn(NamedTuple):
    """A gap's turn: its further fills, after those of the gaps before it.

    ``passed`` counts how often a fill that had been found was passed over on the way here.
    """

    passed: int
    to_go: int
    serial: int
    solved: Sequence[Fill]
    ways: Iterator[list[Fill] | None]


class InTurn:
    """A search for fills of all gaps of a window that are valid together.

    The gaps are those of ``balance`` from ``first`` on. Each gap's first fill is followed first. Where a later gap
    finds no fill, the search (``by_grammar`` only) passes over one fill, those of the last gaps first, then over two
    (limited discrepancy search: Harvey and Ginsberg, 1995). Fills after which the parser's stacks are alike count as
    one.
    """

    def __init__(self, balance: Balance, first: int, window: Window, queue: Queue, *, by_grammar: bool) -> None:
        self._balance, self._first, self._window, self._queue = balance, first, window, queue
        self._by_grammar = by_grammar
        self._serial = count()
        self._seen: set[Hashable] = set()
        self._turns_left = MAX_TURNS * len(window.gaps)
        self._waiting: list[_Turn] = []
        self._wait(0, ())

    def solve(self) -> list[Fill] | None:
        """Return the fills; None if there are none, or none before the clock is over."""
        while self._waiting and self._turns_left and not self._window.clock.over:
            turn = heapq.heappop(self._waiting)
            found = next(turn.ways, ())
            if found is None:  # the call is over: the next one goes on with this turn
                heapq.heappush(self._waiting, turn)
            elif len(found) == len(self._window.gaps):
                return [*found]
            elif found:
                new = self._is_new(found)
                if self._by_grammar:
                    heapq.heappush(self._waiting, turn._replace(passed=turn.passed + new))
                if new:
                    self._turns_left -= 1
                    self._wait(turn.passed, found)
        return None

    def _wait(self, passed: int, solved: Sequence[Fill]) -> None:
        to_go = len(self._window.gaps) - len(solved)
        heapq.heappush(self._waiting, _Turn(passed, to_go, next(self._serial), solved, self._ways(solved)))

    def _is_new(self, solved: Sequence[Fill]) -> bool:
        """Whether no fills were found so far that leave the same stacks before the next gap."""
        texts = tuple(fill.text for fill in solved)
        beside = self._balance.filled(self._first, texts)
        junction = self._junction(beside.ending(self._first), texts)
        left = frozenset(junction.stacks) if junction is not None else frozenset()
        key = len(texts), left or texts
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _junction(self, sides: Sides, texts: Sequence[bytes]) -> GrammarCompletions | None:
        return self._window.junction(sides, texts) if self._by_grammar else None

    def _ways(self, solved: Sequence[Fill]) -> Iterator[list[Fill] | None]:
        """The same fills and one for the next gap, by guesses and by the grammar; None where the call is over first."""
        texts, place = [fill.text for fill in solved], len(solved)
        # fills of earlier gaps are text like any other, and tell what this gap and its ending have to close
        beside = self._balance.filled(self._first, texts)
        closer = partial(_closer, beside, self._first) if solved else None
        gap = self._window.gaps[place]
        for head in _heads(beside, self._first, self._window, place + 1):
            yield from self._all(self._queue(gap, closer), solved, head, TURN_VERIFIES, TURN_SECONDS)
        junction = self._junction(beside.sides(self._first), texts)
        if junction is not None:
            while not junction.is_ready:
                yield None
            own = self._queue(gap, partial(_same, junction))
            head = _joined_head(beside, self._first, self._window, place + 1)
            yield from self._all(own, solved, head, JUNCTION_VERIFIES, JUNCTION_SECONDS)

    def _all(
        self, candidates: Candidates, solved: Sequence[Fill], head: _Head, verifies: int, seconds: float
    ) -> Iterator[list[Fill] | None]:
        """The fills of the next gap that are valid after these fills; None where the call is over first."""
        while True:
            effort = Effort(verifies, seconds, self._window.clock)
            found = joint_search({len(solved): candidates}, [*solved, None], head, effort).whole
            if found is None and not self._window.clock.over:
                return
            yield found


def _closer(balance: Balance, place: int) -> Closer:
    return Closer(balance.sides(place))


def _same(closer: Closer) -> Closer:
    return closer


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
    """A head with endings by the grammar, or with none where the text up to the next gap cannot be read."""
    if count == len(window.gaps):
        return _Head(window, partial(_always, ()))

    def endings(texts: tuple[bytes, ...]) -> Iterator[tuple[bytes, ...]]:
        junction = window.junction(balance.ending(place + 1), texts)
        found = islice(junction.endings(), ENDINGS) if junction is not None else ()
        yield from ((text,) for text in found)

    return _Head(window.head(count), endings)
