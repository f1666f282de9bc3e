"""Asks the language server for a suggestion at every cursor of some stretches, and compares it with the file."""

from collections.abc import Sequence

import msgspec
from tests.benchmarks.editor.typing.stretches import Cursor, Kind, Stretch, cursors
from tests.benchmarks.editor.typist import Typist, language_server
from tests.benchmarks.figures import Row, grouped, percentile
from tests.benchmarks.records import Records

from lacuna_model.commands import output
from lacuna_model.languages.registry import language_for

# The server answers when it has an answer: what is right is measured, not how soon.
PATIENT = {"debounce": False, "deadlineMs": 0, "readAhead": False}


class Asked(msgspec.Struct, frozen=True):
    """The suggestion at a cursor ("" for none)."""

    kind: Kind
    language: str
    path: str
    head: str
    wanted: str
    text: str
    ms: float

    @property
    def right(self) -> bool:
        """Whether its first line is the wanted text."""
        return self.text.split("\n", 1)[0].rstrip() == self.wanted.rstrip()


async def ask(stretches: Sequence[Stretch], options: dict[str, object], records: Records[Asked]) -> list[Asked]:
    """Asks at every cursor of the stretches; ``options`` are settings of the language server."""
    places = [(stretch, cursor) for stretch in stretches for cursor in cursors(stretch)]
    with output.counting("cursors", len(places)) as advance:
        async with language_server(PATIENT | options) as client:
            typist = Typist(client)
            for stretch, cursor in places:
                records.add(await _asked(typist, stretch, cursor))
                advance()
    return records.found


async def _asked(typist: Typist, stretch: Stretch, cursor: Cursor) -> Asked:
    language = language_for(stretch.path.name)
    name = language.name if language is not None else ""
    answer = await typist.suggestion(cursor.before, cursor.after, stretch.path.suffix, name)
    head = cursor.before.rpartition("\n")[2]
    return Asked(cursor.kind, name, stretch.path.name, head, cursor.wanted, answer.text, round(answer.ms, 1))


def rows(found: Sequence[Asked]) -> list[Row]:
    """The counts by language, then by kind of cursor and of all."""
    groups = {**grouped(found, lambda one: one.language), **grouped(found, lambda one: one.kind)}
    result: list[Row] = []
    for what, own in groups.items():
        right = [one for one in own if one.text and one.right]
        result.append(
            {
                "what": what,
                "cursors": len(own),
                "shown": sum(bool(one.text) for one in own),
                "right": len(right),
                "right characters": sum(len(one.wanted) for one in right),
                "ms p50": percentile([one.ms for one in own if one.text], 50),
            }
        )
    return result
