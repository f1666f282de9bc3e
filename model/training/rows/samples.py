"""The tokens that additions to rows are trained on: next edits, and fills where people ask for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from lacuna_model.core.context import heal
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import PastChange, Region
from lacuna_model.editing.prompts import EditedPart, header
from lacuna_model.fim.prompt import prompt_head, whole_prompt
from lacuna_model.text import diff
from lacuna_model.text.lines import indentation
from lacuna_model.tokenizer import FimTokens, Tokenizer
from training.edits import FOLDER, EditExample
from training.packages import CorpusError
from training.stored import read_structs, texts

Kind = Literal["edit", "infill"]
# Tokens of the prompt before and after the gap: most of a step's time goes to the context. Of the header and the lines.
BEFORE, AFTER, MOST = 128, 64, 192
# What follows is learnt where it writes at most so many tokens; more is not to be foreseen.
WRITTEN = 24
# Packages whose examples are drawn in turns, and examples of each of them.
TOGETHER, EACH = 16, 8
# What is learnt of a token that stands there already, beside another one.
COPIED = 0.1
# Where people ask: at the beginning of a line, within one, and for the rest of a block.
PLACES = {"line": 0.4, "part": 0.3, "block": 0.3}
BLOCK_LINES = 8
# Lines that begin with these are no code, and nobody can foresee them.
COMMENTS = ("#", "//", "/*", "*", "--", '"""')


@dataclass(frozen=True, slots=True)
class RowSample:
    """The tokens ``ids`` of a prompt and its answer: rows from ``first`` on have the addition.

    Tokens from ``answer`` on are learnt, with their ``weights``. ``is_nothing``: the answer ends at once.
    """

    ids: Sequence[int]
    first: int
    answer: int
    weights: Sequence[float]
    is_nothing: bool = False


def samples(
    kind: Kind, corpus: Path, split: str, tokenizer: Tokenizer, fim: FimTokens, seed: int
) -> Iterator[RowSample]:
    """Yields samples of a kind without end; raises CorpusError where the corpus has none."""
    drawn: Iterator[RowSample | None]
    if kind == "edit":
        drawn = (edit(one, tokenizer, fim) for one in edits(corpus, split, seed))
    else:
        rng = Random(seed)
        drawn = (infill(text, tokenizer, fim, rng) for text in texts(corpus, split, seed))
    yield from (one for one in drawn if one is not None)


def edit(one: EditExample, tokenizer: Tokenizer, fim: FimTokens) -> RowSample | None:
    """A next edit; None where the lines have no part that is rewritten, or too many tokens."""
    before, standing = one.prefix + one.new, one.standing
    start = len(before.encode())
    try:
        part = EditedPart.of((before + standing + one.suffix).encode(), Region(start, start + len(standing.encode())))
        draft = part.draft(tokenizer)
    except RequestError:
        return None
    if not one.updated.startswith(part.before) or not one.updated.endswith(part.after):
        return None
    changed = part.indentation[-1:] + one.updated[len(part.before) : len(one.updated) - len(part.after)]
    written = [*tokenizer.encode(changed), _end(fim)] if one.follows else [_end(fim)]
    counts = (count for count in range(len(written)) if diff.rejoined(draft, written[:count]) is not None)
    written = written[: next(counts, len(written))]
    weights = _weights(draft, written)
    context = _context(tokenizer, fim, tokenizer.encode(before), standing + one.suffix)
    own = header(tokenizer, fim, PastChange(one.path, one.old, one.new), part.indentation[:-1])
    if len(own) + len(written) > MOST or sum(weight == 1.0 for weight in weights[:-1]) > WRITTEN:
        return None
    # Whether something is to do counts alike in all samples, and as much as what it is.
    whether, what = weights[0], weights[1:]
    shares = [whether, *(weight / sum(what) for weight in what)]
    return RowSample([*context, *own, *written], len(context), len(context) + len(own), shares, not one.follows)


def infill(text: str, tokenizer: Tokenizer, fim: FimTokens, rng: Random) -> RowSample | None:
    """A fill of a random place of a text, which begins with what serving gives back of the text before it.

    None where the place has nothing to fill, a comment, or too many tokens.
    """
    lines = text.splitlines(keepends=True)
    row = rng.randrange(len(lines))
    if not (line := lines[row]).strip() or line.lstrip().startswith(COMMENTS):
        return None
    (place,) = rng.choices(list(PLACES), list(PLACES.values()))
    lead, body = len(indentation(line)), line.rstrip("\n")
    column, wanted = lead, body[lead:]
    if place == "part":
        column = rng.randrange(lead, len(body))
        wanted = body[column:]
    elif place == "block":
        wanted = "".join([line[lead:], *_block(lines, row)]).rstrip("\n")
    before = "".join(lines[max(row - 60, 0) : row]) + line[:column]
    at = len("".join(lines[:row])) + column
    after = text[at + len(wanted) :][: AFTER * 8]
    known, healed = heal(before, tokenizer)
    written = tokenizer.encode(healed.decode() + wanted)
    if len(written) > MOST:
        return None
    context = _context(tokenizer, fim, known, after)
    ids = [*context, *written, _end(fim)]
    return RowSample(ids, len(context) - 1, len(context), [1.0] * (len(written) + 1))


def _block(lines: Sequence[str], row: int) -> list[str]:
    """The lines behind one that are as far indented, a few at most."""
    found = []
    for line in lines[row + 1 : row + BLOCK_LINES]:
        if line.strip() and len(indentation(line)) < len(indentation(lines[row])):
            break
        found.append(line)
    return found


def _context(tokenizer: Tokenizer, fim: FimTokens, before: Sequence[int], after: str) -> list[int]:
    """The prompt of a fill between the tokens ``before`` and a text, of which the nearest tokens are read."""
    head = prompt_head(fim, tokenizer, (), "")
    return whole_prompt(fim, head, before[-BEFORE:], tokenizer.encode(after)[:AFTER])


def _end(fim: FimTokens) -> int:
    return min(fim.ends)


def _weights(old: Sequence[int], new: Sequence[int]) -> list[float]:
    """The weight of each new token: the first says whether something is to do, and most others stand there.

    The first that differs from the old ones says where, also if it stands further below.
    """
    found = [1.0] * len(new)
    for _, place in diff.pairs(old, new):
        found[place] = COPIED if place else 1.0
    found[min(diff.num_common(old, new), len(new) - 1)] = 1.0
    return found


def edits(corpus: Path, split: str, seed: int) -> Iterator[EditExample]:
    """Yields examples of edits without end, of several packages in turns; raises CorpusError where there are none."""
    paths = sorted((corpus / FOLDER / split).glob("*.jsonl.zst"))
    if not paths:
        raise CorpusError(f"{corpus}: no {split} edits; `python -m training edits` makes them")
    rng = Random(seed)
    while True:
        rng.shuffle(paths)
        for first in range(0, len(paths), TOGETHER):
            drawn = list[EditExample]()
            for path in paths[first : first + TOGETHER]:
                every = list(read_structs(path, EditExample))
                drawn += rng.sample(every, min(EACH, len(every)))
            rng.shuffle(drawn)
            yield from drawn
