"""Caches the insertions and pieces of each grammar on disk, since finding them takes up to a second."""

import hashlib
import importlib
from functools import cache, partial
from pathlib import Path

import msgspec

from lacuna_model.hub import atomic, models
from lacuna_model.hub.keeping import keep
from lacuna_model.languages.language import Language
from lacuna_model.syntax.lr import grammar_tables, insertions, shortest
from lacuna_model.syntax.lr.insertions import Ending, Insertion, Insertions, Piece, Pieces
from lacuna_model.syntax.lr.parse_table import ParseTable
from lacuna_model.syntax.lr.shortest import Graph, Shortest, Ways, written

DIGEST = hashlib.sha256().digest_size


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    terminals: list[Insertion]
    symbols: dict[int, Piece]
    endings: dict[int, msgspec.Raw]  # by state, encoded, since most are never asked for

    def ending(self, state: int) -> list[Ending]:
        """Return the endings of a state."""
        found = self.endings.get(state)
        return msgspec.msgpack.decode(found, type=list[Ending]) if found is not None else []


@cache
def pieces_of(language: Language, table: ParseTable) -> tuple[Insertions, Pieces]:
    """Return the insertions and pieces of a language, from the cache where it has them."""
    file = _location(language)
    kept = _read(file)
    if kept is None:
        graph = _graph(table)
        terminals = written(table, language.lexicon.operand, graph)
        found = Shortest(terminals, graph)
        endings = {state: msgspec.Raw(msgspec.msgpack.encode(one)) for state, one in found.endings.items()}
        kept = _Kept(terminals, found.symbols, endings)
        keep(file, f"{language.name}-*", partial(_write, kept=kept))
    return Insertions(table, kept.terminals), Pieces(table, kept.symbols, kept.ending)


@cache
def ways_of(language: Language, table: ParseTable) -> Ways:
    """Return the ways to each state of a language's parser; few searches need them."""
    return Ways(_graph(table), pieces_of(language, table)[1].symbols)


@cache
def _graph(table: ParseTable) -> Graph:
    return Graph(table)


def _location(language: Language) -> Path:
    """The cache file for this version of the grammar and of the code that finds the pieces."""
    code = [Path(str(module.__file__)) for module in (grammar_tables, insertions, shortest)]
    digest = hashlib.sha256(language.symbol.encode() + b" " + language.lexicon.operand)
    for file in (*code, *Path(str(importlib.import_module(language.module).__file__)).parent.glob("*binding*")):
        status = file.stat()
        digest.update(f" {file} {status.st_size} {status.st_mtime_ns}".encode())
    return models.cache_dir() / "grammars" / f"{language.name}-{digest.hexdigest()[:24]}"


def _read(file: Path) -> _Kept | None:
    """The content of a cache file; None where it is missing or damaged, and then it is made again."""
    try:
        data = file.read_bytes()
        whole = hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST]
        return msgspec.msgpack.decode(data[DIGEST:], type=_Kept) if whole else None
    except (OSError, msgspec.MsgspecError):
        return None


def _write(file: Path, kept: _Kept) -> None:
    data = msgspec.msgpack.encode(kept)
    with atomic.replacing(file) as stream:
        stream.write(hashlib.sha256(data).digest() + data)
