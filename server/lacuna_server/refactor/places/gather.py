"""The files that a refactor reads, and the places in them: by structural patterns, tree-sitter queries or ranges."""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_model.files.opening import absolute
from lacuna_model.files.scanning import admits, quotable, scan
from lacuna_model.languages.registry import language_for, require_language
from lacuna_server import files
from lacuna_server.refactor.places.matching import WHOLE, PatternMatch, Span, find
from lacuna_server.refactor.places.pattern import ParsedPattern
from lacuna_server.refactor.places.source import Source

# The captures of a query that name the node to replace, or the node to put text before or after.
ROLES = ("place", "before", "after")


# A refactor has no limit on the number of files; it skips only files that are too large to be written by a person.
MAX_FILE_BYTES = 2_000_000
# A path with a hidden name, which only a glob with one finds.
HIDDEN = re.compile(r"(^|/)\.")


def gather(
    places: Sequence[str],
    languages: Iterable[str] = (),
    *,
    forced: str = "",
    trusting: bool = True,
    opened: Mapping[str, Source] | None = None,
    roots: Sequence[Path] = (),
) -> tuple[list[Source], tuple[str, ...]]:
    """Returns the sources at these paths and globs, and a line about each file of fitting name that is left out.

    In folders and globs, ignored, secret and generated files are left out, and so are files in none of the
    ``languages`` (empty: any known language). A file that is named itself is always taken, in the language ``forced``
    if that is given; if not ``trusting``, it is left out where it is generated or holds a credential. ``opened`` has
    the files that are open in an editor, by their real paths: these are not read, and no binary files. A glob leaves
    out what is hidden or ignored below the one of ``roots`` (by default the current folder) that it begins in, else
    below the folder that it begins in.

    Raises RequestError for a path that does not exist (with ``opened`` a line says so), and RequestError or OSError for
    a named file that cannot be read.
    """
    wanted, shown = frozenset(languages), opened or {}
    sources: dict[str, Source] = {}
    left_out: list[str] = []
    for place in places:
        if not (Path(place).exists() or glob.has_magic(place)):
            if opened is None:
                raise RequestError(f"{place}: no such file or folder")
            left_out.append(f"{place}: no such file or folder")
            continue
        named = Path(place).is_file()
        for path in _paths(place, left_out, roots or [Path.cwd()]):
            language = require_language(forced) if named and forced else language_for(str(path))
            if language is None and named:
                raise RequestError(f"{path}: no language is known for this name; say which with --lang")
            if language is None or (wanted and language.name not in wanted):
                continue
            key = str(path.resolve())
            if key in sources:
                continue
            try:
                source = shown.get(key) or Source(str(path), files.read(path).text, language)
            except (RequestError, OSError) as error:
                if named:
                    raise
                said = f"{path} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
                left_out.append(said)
                continue
            if (named and trusting) or quotable(source.text.replace("\0", "")):
                sources[key] = source
            else:
                left_out.append(f"{path} is generated or holds a credential")
    return list(sources.values()), tuple(left_out)


def _paths(place: str, left_out: list[str], roots: Sequence[Path]) -> Iterator[Path]:
    path = Path(place)
    if path.is_dir():
        for file, _ in scan(path, max_file_bytes=MAX_FILE_BYTES, max_files=10**9, max_total_bytes=10**15):
            yield path / file.relative_to(absolute(path))
    elif path.exists():
        yield path
    else:
        folder, found = _globbed(place)
        begin = folder.resolve()
        root = next((root for root in roots if begin.is_relative_to(root)), begin)
        homes = [begin] if path.anchor else [begin, Path.cwd()]
        for one in found:
            if admits(root, begin / one.relative_to(folder)):
                if any(one.resolve().is_relative_to(home) for home in homes):
                    yield one
                else:
                    left_out.append(f"{one} is a link out of the folder; it is not followed")


def _globbed(place: str) -> tuple[Path, list[Path]]:
    """Returns the folder that a glob begins in, and its files. An existing name with brackets in it is literal."""
    path = Path(place)
    folder, parts = Path(path.anchor), list(path.parts[1:] if path.anchor else path.parts)
    while parts and (not glob.has_magic(parts[0]) or os.path.lexists(folder / parts[0])):
        folder /= parts.pop(0)
    rest = "/".join(parts + ["*"] * (parts[-1:] == ["**"]))
    try:
        found = sorted({file for file in folder.glob(rest) if file.is_file()} if rest else ())
    except ValueError as error:
        raise RequestError(f"{place}: {error}") from error
    if not HIDDEN.search(rest):
        found = [file for file in found if not HIDDEN.search(file.relative_to(folder).as_posix())]
    return folder, found


def by_readings(source: Source, group: Sequence[ParsedPattern]) -> list[PatternMatch]:
    """Returns the places of any of these readings of a pattern, including nested ones. Raises UnparsableError."""
    places: dict[Span, PatternMatch] = {}
    for reading in group:
        if all(word in source.data for word in reading.words()):
            for found in find(reading, source.tree, source.data, source.language):
                places.setdefault((found.start, found.end), found)
    chosen: list[PatternMatch] = []
    for match in sorted(places.values(), key=lambda match: (match.start, -match.end)):
        last = chosen[-1] if chosen else None
        if last is None or match.start > last.start or source.data[match.end : last.end].strip(b"; \t\r\n"):
            chosen.append(match)  # and not the same place without its end
    return chosen


def by_query(source: Source, query: str) -> list[PatternMatch]:
    """Returns the places that a tree-sitter query matches.

    The node captured as ``@place`` is replaced; ``@before`` and ``@after`` put text before or after their node. A query
    with only one capture may give it any name. Every other capture is a metavariable: ``@name`` is ``$NAME``. Raises
    RequestError for an invalid query.
    """
    found = []
    for captures in source.query(query):
        spans = {name: (nodes[0].start_byte, nodes[-1].end_byte) for name, nodes in captures.items() if nodes}
        roles = [role for role in ROLES if role in spans] or (list(spans) if len(spans) == 1 else [])
        if len(roles) != 1:
            raise RequestError("the query needs one capture named @place, @before or @after")
        start, end = whole = spans[roles[0]]
        pieces = {name.upper(): span for name, span in spans.items()} | {WHOLE: whole}
        at = {"before": (start, start), "after": (end, end)}.get(roles[0], whole)
        found.append(PatternMatch(*at, pieces))
    return found


def query_names(query: str) -> frozenset[str]:
    """Returns the names of the metavariables that a query binds."""
    return frozenset(name.upper() for name in re.findall(r"@([A-Za-z_]\w*)", query))


def by_ranges(source: Source, spans: Sequence[Span]) -> list[PatternMatch]:
    """Returns the given ranges as places. Raises RequestError where two overlap."""
    ordered = sorted(spans)
    for before, after in pairwise(ordered):
        if after[0] < before[1] or after == before:
            line, column = source.position(after[0])
            raise RequestError(f"the ranges of {source.path} overlap at {line}:{column}")
    return [PatternMatch(start, end, {WHOLE: (start, end)}) for start, end in ordered]
