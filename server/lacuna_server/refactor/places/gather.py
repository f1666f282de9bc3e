"""Gathers the files of a refactor: single files, globs, and folders without what git ignores."""

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_model.files.scanning import WorkspaceSettings, admits, quotable, scan
from lacuna_model.languages.registry import language_for, require_language
from lacuna_server import files
from lacuna_server.refactor.places.globs import Glob
from lacuna_server.refactor.places.source import Source

# A refactor has no limit on the number of files; it skips only files that are too large to be written by a person.
EVERYTHING = WorkspaceSettings(max_file_bytes=2_000_000, max_files=10**9, max_total_bytes=10**15)

MISSING = "no such file or folder"


def gather(
    places: Sequence[str],
    languages: Iterable[str] = (),
    *,
    forced: str = "",
    trusting: bool = True,
    opened: Mapping[str, str] | None = None,
    missing_left_out: bool = False,
) -> tuple[list[Source], tuple[str, ...]]:
    """Returns the sources at these paths and globs, and a line about each file of fitting name that is left out.

    In folders and globs, ignored, secret and generated files are left out, and so are files in none of the
    ``languages`` (empty: any known language). A file that is named itself is always taken, in the language ``forced``
    if that is given; if not ``trusting``, it is left out where it is generated or holds a credential. ``opened`` has
    the texts of files that are open in an editor, by their real paths: these are not read, and no binary files. Raises
    RequestError for a path that does not exist, unless it is ``missing_left_out`` with a line of its own, and
    RequestError or OSError for a named file that cannot be read.
    """
    wanted, shown = frozenset(languages), opened or {}
    sources: dict[str, Source] = {}
    left_out: list[str] = []
    for place in places:
        if not (Path(place).exists() or glob.has_magic(place)):
            if not missing_left_out:
                raise RequestError(f"{place}: {MISSING}")
            left_out.append(f"{place}: {MISSING}")
            continue
        named = Path(place).is_file()
        for path in _paths(place, left_out):
            language = require_language(forced) if named and forced else language_for(str(path))
            if language is None and named:
                raise RequestError(f"{path}: no language is known for this name; say which with --lang")
            if language is None or (wanted and language.name not in wanted):
                continue
            key = str(path.resolve())
            if key in sources:
                continue
            try:
                text = shown[key] if key in shown else files.read(path).text
            except (RequestError, OSError) as error:
                if named:
                    raise
                said = f"{path} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
                left_out.append(said)
                continue
            if (named and trusting) or quotable(text.replace("\0", "") if key in shown else text):
                sources[key] = Source(str(path), text, language)
            else:
                left_out.append(f"{path} is generated or holds a credential")
    return list(sources.values()), tuple(left_out)


def _paths(place: str, left_out: list[str]) -> Iterator[Path]:
    path = Path(place)
    if path.is_dir():
        for file in scan(path, EVERYTHING):
            yield path / file.path.relative_to(path.absolute())
    elif path.exists():
        yield path
    else:
        root = Path.cwd() if not path.is_absolute() else Path(path.anchor)
        named = Glob(place)
        yield from (found for found in named.files() if admits(root, found, EVERYTHING))
        left_out += [
            f"{link} is a link out of the folder; it is not followed"
            for link in named.outside
            if admits(root, link, EVERYTHING)
        ]
