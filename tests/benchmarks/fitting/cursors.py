"""Cursors of people who type stretches of held-out files, and what the engine writes at each.

A stretch of some lines is typed into a file that has the lines above and, mostly, below it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
from tests.benchmarks.held_out.cases import code_lines, find_held_out, long_enough
from tests.benchmarks.records import Records

from lacuna_lsp.suggest.triggers import shape
from lacuna_model.commands import output
from lacuna_model.core.params import FillGaps, InfillRequest, Region
from lacuna_model.core.regions import at_cursor
from lacuna_model.decode.gate import GapSurroundings, Gate, JudgedFill, JudgedToken, Judgement
from lacuna_model.engine import Engine, Steps
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.text.lines import closers, in_word, indentation
from training.stored import Document, read_documents

LENGTHS = (2, 4, 8, 16, 24)  # lines of a stretch
AT_THE_END = 0.2  # share of stretches at a file's end
AT_THE_START = 0.7  # share of lines at whose start the engine is asked
AT_A_WORD = 0.6  # share of the places within a line that are moved to a word's end
WITH_CLOSERS = 0.4  # share of cursors behind whose open brackets the editor has closed them
LONG_LINE = 20  # characters, from which on a line has two places within it
BELOW = 12  # lines of the truth that are kept
MAX_TOKENS, MAX_LINES = 96, 8
TOGETHER = 8  # files that are typed at the same time, so that they share passes


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A cursor: the row and column in a file, the first row behind what is typed, and what the editor has closed."""

    language: str
    package: str
    path: str
    row: int
    column: int
    stop: int
    closers: str

    def around(self, text: str) -> tuple[str, str]:
        """The text before and after the cursor, in the text of its file."""
        lines = text.split("\n")
        before = "\n".join([*lines[: self.row], lines[self.row][: self.column]])
        return before, self.closers + "\n" + "\n".join(lines[self.stop :])

    def truth(self, text: str) -> str:
        """What is typed there: the rest of the line, and the next lines."""
        lines = text.split("\n")
        return "\n".join([lines[self.row][self.column :], *lines[self.row + 1 : self.row + BELOW]])


class Asked(msgspec.Struct, frozen=True):
    """What a model wrote at a place: the delivered ``fill``, and its tokens, each a text, a log-probability, a margin.

    The bytes of a token's text are those of Latin-1.
    """

    place: Place
    model: str
    is_block: bool
    fill: str
    tokens: tuple[tuple[str, float, float], ...]
    end: tuple[float, float] | None

    @property
    def written(self) -> JudgedFill:
        """The tokens as the gate reads them."""
        tokens = [JudgedToken(text.encode("latin-1"), log_prob, margin) for text, log_prob, margin in self.tokens]
        return JudgedFill(tokens, JudgedToken(b"", *self.end) if self.end is not None else None)


class _Listening(Gate):
    """A gate that keeps the last fill that it was asked about."""

    written: JudgedFill = JudgedFill(())

    def judged(self, fill: str, written: JudgedFill, around: GapSurroundings) -> Judgement:
        self.written = written
        return super().judged(fill, written, around)


def ask(documents: Sequence[Document], engine: Engine, records: Records[Asked], count: int) -> None:
    """Adds what the engine writes to the records until there are ``count`` of this model.

    Raises LacunaError if no document is long enough.
    """
    listening = engine.gate = _Listening(*msgspec.structs.astuple(engine.gate))
    name = engine.model.name
    known = sum(one.model == name for one in records.found)
    usable = long_enough(documents)
    files = [requests(usable, Random(f"{known} {number}")) for number in range(TOGETHER)]
    running: list[tuple[Place, InfillRequest, Steps] | None] = [None] * TOGETHER
    with output.counting("cursors", count) as advance:
        advance(known)
        while known < count:
            for number, file in enumerate(files):
                if (one := running[number]) is None:
                    place, request = next(file)
                    one = running[number] = place, request, engine.stream(request, document=f"{number}:{request.path}")
                try:
                    next(one[2])
                except StopIteration as end:
                    running[number] = None
                    fill = end.value.fills[0] if end.value.status == "ok" else ""
                    records.add(_asked(one[0], one[1], name, fill, listening.written))
                    known += 1
                    advance()
                    if known == count:
                        break


def held_out_documents(corpus: Path) -> list[Document]:
    """The held-out files of a corpus folder in every language; raises RequestError if there are none."""
    return [document for path in find_held_out(corpus).values() for document in read_documents(path)]


def requests(documents: Sequence[Document], rng: Random) -> Iterator[tuple[Place, InfillRequest]]:
    """Without end: cursors in stretches of files, in the order in which they are typed, and the request for each.

    Languages take turns, and in each the packages are drawn alike. The documents are long enough for stretches.
    """
    packages: dict[str, dict[str, list[Document]]] = {}
    for document in documents:
        packages.setdefault(document.language, {}).setdefault(document.package, []).append(document)
    languages = sorted(packages)
    turn = rng.randrange(len(languages))
    while True:
        own = packages[languages[turn % len(languages)]]
        turn += 1
        document = rng.choice(own[rng.choice(sorted(own))])
        for place in _stretch(document, rng):
            before, after = place.around(document.text)
            wanted = shape(before, after, "auto", invoked=False)
            if wanted != "none":
                yield place, _request(place, before, after, MAX_LINES if wanted == "block" else 1)


def _request(place: Place, before: str, after: str, max_lines: int) -> InfillRequest:
    region: Region = at_cursor(len(before.encode()), place.closers, MAX_TOKENS, max_lines)
    path = f"{place.package}/{place.path}"
    return InfillRequest(before + after, (region,), path=path, language=place.language, task=FillGaps(open=True))


def _stretch(document: Document, rng: Random) -> Iterator[Place]:
    """The cursors of a stretch of a file."""
    lines = document.text.split("\n")
    try:
        code = code_lines(document)
    except UnparsableError:
        return
    first, length = rng.choice(code), rng.choice(LENGTHS)
    stop = len(lines) if rng.random() < AT_THE_END else min(first + length, len(lines))
    for row in code:
        if first <= row < first + length:
            for column in _columns(lines[row].rstrip(), rng):
                closed = closers(lines[row][:column]) if rng.random() < WITH_CLOSERS else ""
                yield Place(
                    language=document.language,
                    package=document.package,
                    path=document.path,
                    row=row,
                    column=column,
                    stop=stop,
                    closers=closed,
                )


def _columns(line: str, rng: Random) -> list[int]:
    """Where a person's pause in typing a line is."""
    begin = len(indentation(line))
    found = {begin} if rng.random() < AT_THE_START else set()
    for _ in range(2 if len(line) - begin > LONG_LINE else 1):
        at = rng.randrange(begin, len(line))
        if rng.random() < AT_A_WORD:
            while begin < at < len(line) and in_word(line[at - 1]) and in_word(line[at]):
                at += 1
        found.add(at)
    return sorted(found - {len(line)})


def _asked(place: Place, request: InfillRequest, model: str, fill: str, written: JudgedFill) -> Asked:
    def numbers(token: JudgedToken) -> tuple[float, float]:
        return round(token.log_prob, 3), round(token.margin, 2)

    return Asked(
        place,
        model,
        request.regions[0].max_lines != 1,
        fill,
        tuple((token.text.decode("latin-1"), *numbers(token)) for token in written.tokens),
        numbers(written.end) if written.end is not None else None,
    )
