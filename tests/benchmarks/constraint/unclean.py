"""The command ``unclean``: measures refusals in files that are cut off, broken or in newer syntax.

Each case has its cursor in a line of a real file. The rest of the file is missing, has lost a bracket, has a duplicated
operator, contains merge markers, or uses syntax that is newer than the parsers. A synthetic model that knows the rest
of the line, apart from some noise, fills it: the constraint must not refuse.
"""

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Literal, get_args

import msgspec
import numpy as np
from rich.table import Table
from tests.benchmarks.constraint.newer_syntax import NEWER
from tests.benchmarks.constraint.synthetic import Case, SyntheticModel

from lacuna_model.core.context import Gap, finished
from lacuna_model.core.params import Region
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.syntax import Language, SyntaxConstraint, language_for, parses
from lacuna_model.syntax.faults import indentation_faults, tree_faults
from lacuna_model.tokens.tokenizer import Tokenizer

State = Literal["cut off", "a bracket lost", "an operator twice", "in a merge", "newer syntax"]
STATES: tuple[State, ...] = get_args(State)
SPARE = 16  # tokens that a fill may have more than the true one
AT_THE_START = 0.35  # share of cursors at the start of a line; the others are before a word in it
MAX_LINES = 400  # lines of a file; longer files are cut
LONGEST = 160  # characters of a line; longer lines are usually generated
TRIES = 60
SMALLEST, LARGEST = 300, 60_000  # bytes of a file in a folder
ALL = "all"
WORD = re.compile(r"\w+|[^\w\s]+")
BRACKET = re.compile(r"[()\[\]{}]")
OPERATOR = re.compile(r"(?<=[\w)\]}\"']) ?(?:==|[-+*/=<>:,.&|]) ?(?=[\w(\[{\"'])")


class Typing(msgspec.Struct, frozen=True, kw_only=True):
    """A case with the state of its file and the row of the cursor."""

    case: Case
    state: State
    row: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result at a cursor: the reason for a refusal or "", the fill, the true text, and the milliseconds.

    ``adds_error`` means that the file has more errors with the fill than with an empty gap and with the true text.
    """

    language: str
    state: State
    row: int
    reason: str
    fill: str
    truth: str
    adds_error: bool
    ms: float


class Row(msgspec.Struct, frozen=True):
    """The results for one language, in each state of the file; ``empty`` counts the fills without any text."""

    language: str
    cursors: int
    refused: dict[State, int]
    share: float
    empty: int
    adding_errors: int
    exact: float
    p50: float
    p95: float


def cases(texts: Sequence[bytes], language: Language, tokens: Tokenizer, count: int, seed: int) -> Iterator[Typing]:
    """Yields ``count`` cursors in files that parse, the states in turn; the same arguments give the same cases."""
    rng = Random(f"{language.name} {seed}")
    sound = [text for text in (_head(text, language) for text in texts) if text]
    for number in range(count if sound else 0):
        state = STATES[number % len(STATES)]
        for _ in range(TRIES):
            found = _cut(rng.choice(sound).split("\n"), language, tokens, state, rng)
            if found is not None:
                yield found
                break


def _head(text: bytes, language: Language) -> str:
    """Returns the text, cut to ``MAX_LINES`` lines, or "" if it does not parse."""
    lines = text.decode(errors="ignore").replace("\r\n", "\n").split("\n")
    kept = "\n".join(lines[:MAX_LINES])
    return kept if parses(kept.encode() if len(lines) > MAX_LINES else text, language) else ""


def _cut(lines: Sequence[str], language: Language, tokens: Tokenizer, state: State, rng: Random) -> Typing | None:
    """Returns a cursor in a random line of code with the other lines in a state, or None if the line is unsuitable."""
    row = rng.randrange(len(lines))
    line = lines[row].rstrip()
    comments = tuple(mark.decode() for mark in language.lexicon.line_comment)
    starts = [match.start() for match in WORD.finditer(line)]
    if not starts or len(line) > LONGEST or line.lstrip().startswith((*comments, "*", "/*", "<!--")):
        return None
    begin = starts[0] if rng.random() < AT_THE_START else rng.choice(starts)
    around = _spoilt(list(lines[:row]), list(lines[row + 1 :]), language, state, rng)
    truth = tuple(tokens.encode(line[begin:]))
    if around is None or tokens.decode_bytes(truth).decode() != line[begin:]:
        return None
    above, below = around
    before = "\n".join([*above, line[:begin]]).encode()
    text = before + "".join("\n" + other for other in below).encode()
    region = Region(len(before), len(before), len(truth) + SPARE, max_lines=1, single_line=True)
    return Typing(case=Case(language, text, (region,), (truth,)), state=state, row=len(above))


def _spoilt(
    above: list[str], below: list[str], language: Language, state: State, rng: Random
) -> tuple[list[str], list[str]] | None:
    """Returns the lines above and below a cursor in a state, or None if that state is not possible."""
    side = rng.choice([side for side in (above, below) if side] or [above])
    if state == "cut off":
        return above, []
    if state == "newer syntax":
        return _with_newer(above, below, language, rng)
    if state == "in a merge":
        at = rng.randrange(len(side) + 1)
        end = min(at + rng.randrange(1, 4), len(side))
        theirs = [re.sub(r"\w+(?=\W*$)", "other", line) for line in side[at:end]]
        side[at:end] = ["<<<<<<< HEAD", *side[at:end], "=======", *theirs, ">>>>>>> branch"]
        return above, below
    pattern = BRACKET if state == "a bracket lost" else OPERATOR
    near = sorted(range(len(side)), key=lambda at: len(side) - at if side is above else at)
    places = [(at, match) for at in near[: rng.choice((1, 4, 400))] for match in pattern.finditer(side[at])]
    if not places:
        return None
    at, match = rng.choice(places)
    twice = "" if state == "a bracket lost" else f"{match.group()} {match.group().strip()} "
    side[at] = side[at][: match.start()] + twice + side[at][match.end() :]
    return above, below


def _with_newer(
    above: list[str], below: list[str], language: Language, rng: Random
) -> tuple[list[str], list[str]] | None:
    """Inserts a statement in newer syntax before one at the top level, above or below the cursor."""
    newer = NEWER.get(language.name)
    if newer is None:
        return None
    statement = rng.choice(newer).split("\n")
    side = rng.choice([above, below])
    places = [at for at, line in enumerate(side) if _is_border([*above, "", *below], at, side is above, len(above))]
    if not places:
        return None
    at = rng.choice(places)
    side[at:at] = statement
    return above, below


def _is_border(lines: Sequence[str], at: int, before: bool, row: int) -> bool:
    """Whether a line is empty and the next one begins in the first column, so that a statement may end here."""
    at = at if before else at + row + 1
    following = next((line for line in lines[at + 1 :] if line.strip()), "")
    return not lines[at].strip() and following[:1].isalpha()


def answer(typing: Typing, tokens: Tokenizer, noise: float, seed: int) -> Answer:
    """Runs the constraint with a model that knows the wanted text, apart from some ``noise``."""
    case = typing.case
    model = SyntheticModel(case.truths, tokens, np.random.default_rng([seed, typing.row]), noise=noise)
    began = time.perf_counter()
    constraint = SyntaxConstraint(case.text, case.regions, case.language, tokens)
    fills = [Fill(Gap(0), region.max_tokens) for region in case.regions]
    loop = denoise(model, fills, [constraint], tokens, deadline=None)
    verdict = finished(loop).verdict
    ms = (time.perf_counter() - began) * 1e3
    fill, truth = verdict.fills[0] if verdict.fills is not None else "", tokens.decode_bytes(case.truths[0])
    counts = [_errors(case, one) for one in (fill.encode(), b"", truth)] if fill else [0]
    return Answer(
        language=case.language.name,
        state=typing.state,
        row=typing.row,
        reason="" if verdict.fills is not None else verdict.message,
        fill=fill,
        truth=truth.decode(),
        adds_error=counts[0] > max(counts[1:], default=0),
        ms=ms,
    )


def _errors(case: Case, fill: bytes) -> int:
    """Returns the number of errors in a case's file with a fill."""
    text = case.text[: case.regions[0].start] + fill + case.text[case.regions[0].end :]
    tree = case.language.parser().parse(text)
    return len(tree_faults(tree)) + len(indentation_faults(tree, text) if case.language.columns else ())


def sample(paths: Sequence[Path], most: int, seed: int) -> dict[str, list[bytes]]:
    """Draws at most ``most`` files per language by ``seed``, from files and from all files in folders."""
    found: dict[str, list[Path]] = {}
    for path in sorted(file for given in paths for file in (_within(given) if given.is_dir() else [given])):
        language = language_for(str(path))
        if language is not None:
            found.setdefault(language.name, []).append(path)
    rng = Random(seed)
    return {name: [one.read_bytes() for one in rng.sample(own, min(most, len(own)))] for name, own in found.items()}


def _within(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder that a person may have written, by size and name."""
    for path in folder.rglob("*.*"):
        if path.is_file() and SMALLEST <= path.stat().st_size <= LARGEST and ".min." not in path.name:
            yield path


def rows(answers: Sequence[Answer]) -> list[Row]:
    """Returns the results per language, then those of all languages."""
    languages = sorted({one.language for one in answers})
    return [
        *(_row(name, [one for one in answers if one.language == name]) for name in languages),
        *([_row(ALL, answers)] if answers else []),
    ]


def _row(name: str, own: Sequence[Answer]) -> Row:
    refused = {state: sum(one.state == state and bool(one.reason) for one in own) for state in STATES}
    p50, p95 = (float(np.percentile([one.ms for one in own], share)) for share in (50, 95))
    exact = sum(one.fill.rstrip() == one.truth for one in own)
    empty = sum(not one.reason and not one.fill.strip() for one in own)
    adding = sum(one.adds_error for one in own)
    return Row(name, len(own), refused, sum(refused.values()) / len(own), empty, adding, exact / len(own), p50, p95)


def table(found: Sequence[Row]) -> Table:
    """Returns a table with one row per language."""
    grid = Table(title="refused in files that are not clean")
    for column in ("language", "cursors", *STATES, "refused", "empty", "adding errors", "exact", "p50 ms", "p95 ms"):
        grid.add_column(column, justify="left" if column == "language" else "right")
    for row in found:
        counts = [str(row.refused[state]) for state in STATES]
        shares = (f"{row.share:.1%}", str(row.empty), str(row.adding_errors), f"{row.exact:.0%}")
        grid.add_row(row.language, str(row.cursors), *counts, *shares, f"{row.p50:,.0f}", f"{row.p95:,.0f}")
    return grid
