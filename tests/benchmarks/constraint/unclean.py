"""Cursors in files that are cut off, broken or in newer syntax.

Each case has its cursor in a line of a real file. The rest of the file is missing, has lost a bracket, has a duplicated
operator, contains merge markers, or uses syntax that is newer than the parsers.
"""

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal, get_args

from tests.benchmarks.constraint.newer_syntax import NEWER
from tests.benchmarks.constraint.synthetic import Case

from lacuna_model.core.params import Region
from lacuna_model.syntax import Language, parses
from lacuna_model.tokenizer import Tokenizer

State = Literal["cut off", "a bracket lost", "an operator twice", "in a merge", "newer syntax"]
STATES: tuple[State, ...] = get_args(State)
SPARE = 16  # tokens that a fill may have more than the true one
AT_THE_START = 0.35  # share of cursors at the start of a line; the others are before a word in it
MAX_LINES = 400  # lines of a file; longer files are cut
LONGEST = 160  # characters of a line; longer lines are usually generated
TRIES = 60
WORD = re.compile(r"\w+|[^\w\s]+")
BRACKET = re.compile(r"[()\[\]{}]")
OPERATOR = re.compile(r"(?<=[\w)\]}\"']) ?(?:==|[-+*/=<>:,.&|]) ?(?=[\w(\[{\"'])")


def cut_cursors(texts: Sequence[bytes], language: Language, tokens: Tokenizer, count: int, seed: int) -> Iterator[Case]:
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


def _cut(lines: Sequence[str], language: Language, tokens: Tokenizer, state: State, rng: Random) -> Case | None:
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
    return Case(language, text, (region,), (truth,), state)


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
