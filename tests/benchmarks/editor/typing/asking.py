"""Asks the language server for a suggestion at every cursor of some stretches, and compares it with the file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import get_args

import msgspec
from tests.benchmarks.editor.figures import percentile
from tests.benchmarks.editor.typing.stretches import Cursor, Kind, Stretch, cursors
from tests.benchmarks.editor.typist import Typist, typist

from lacuna_model.core.params import DecodeOptions
from lacuna_model.core.regions import at_cursor
from lacuna_model.languages.registry import language_for
from lacuna_server.client.client import Client
from lacuna_server.client.starting import Address
from lacuna_server.wire.protocol import Infill, Open, Result

# The server answers when it has an answer: what is right is measured, not how soon.
PATIENT = {"debounce": False, "deadlineMs": 0, "readAhead": False}
MAX_TOKENS = 96
URI = "bench:/{}"


class Asked(msgspec.Struct, frozen=True):
    """The suggestion at a cursor ("" for none).

    ``foreign``: the model alone writes another text there, with a prompt that has another path and no other document.
    """

    kind: Kind
    language: str
    path: str
    head: str
    wanted: str
    text: str
    foreign: bool
    ms: float

    @property
    def right(self) -> bool:
        """Whether its first line is the wanted text."""
        return self.text.split("\n", 1)[0].rstrip() == self.wanted.rstrip()


class Row(msgspec.Struct, frozen=True):
    """Counts of the suggestions at the cursors of one kind, or in one language; the time is in milliseconds."""

    what: str
    cursors: int
    shown: int
    right: int
    foreign: int
    right_characters: int
    p50: float


async def ask(
    stretches: Sequence[Stretch], address: Address, options: dict[str, object], advance: Callable[[str], None]
) -> list[Asked]:
    """Asks at every cursor of the stretches; ``options`` are settings of the language server."""
    found = []
    async with typist(PATIENT | options) as (one, _), await Client.connect(address, name="lacuna-bench") as client:
        await one.ready()
        for stretch in stretches:
            found += [await _asked(one, client, stretch, cursor) for cursor in cursors(stretch)]
            advance(stretch.path.name)
    return found


async def _asked(one: Typist, client: Client, stretch: Stretch, cursor: Cursor) -> Asked:
    language = language_for(stretch.path.name)
    name = language.name if language is not None else ""
    one.open(cursor.before, cursor.after, stretch.path.suffix, name)
    answer = await one.suggest()
    foreign = bool(answer.text) and not await _writes(client, stretch, cursor, answer.text)
    head = cursor.before.rpartition("\n")[2]
    return Asked(cursor.kind, name, stretch.path.name, head, cursor.wanted, answer.text, foreign, round(answer.ms, 1))


async def _writes(client: Client, stretch: Stretch, cursor: Cursor, text: str) -> bool:
    """Whether the model alone, without a constraint, writes a text that begins with this one."""
    tail = cursor.after.partition("\n")[0]
    lines = 0 if "\n" in text else 1
    region = at_cursor(len(cursor.before.encode()), tail, MAX_TOKENS, lines)
    uri = URI.format(stretch.path.name)
    client.open(Open(uri, cursor.before + cursor.after, path=stretch.path.name))
    asked = Infill("", uri, client.version(uri), (region,), options=DecodeOptions(syntax=False))
    async with aclosing(client.infill(asked)) as answers:
        async for answer in answers:
            if isinstance(answer, Result):
                return answer.result.fills[0].startswith(text)
    return False


def rows(found: Sequence[Asked]) -> Iterator[Row]:
    """Yields the counts by kind of cursor, then by language, then of all."""
    for kind in get_args(Kind):
        yield from _row(kind, [one for one in found if one.kind == kind])
    for language in sorted({one.language for one in found}):
        yield from _row(language, [one for one in found if one.language == language])
    yield from _row("all", found)


def _row(what: str, own: Sequence[Asked]) -> Iterator[Row]:
    if own:
        right = [one for one in own if one.text and one.right]
        yield Row(
            what,
            len(own),
            sum(bool(one.text) for one in own),
            len(right),
            sum(one.foreign for one in own),
            sum(len(one.wanted) for one in right),
            percentile([one.ms for one in own if one.text], 50),
        )
