"""Explains why a text may not stand at a place: the syntax errors that the file would have with it."""

from lacuna_model.core.errors import RequestError
from lacuna_model.languages.registry import language_for
from lacuna_model.syntax.check.compilers import COMPILES
from lacuna_model.syntax.check.error_set import Fault, Splice, carried_over, tree_faults
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_server.files import FileText
from lacuna_server.refactor.places.source import Source

MAX_NAMED = 8
KINDS = {"ERROR": "is not valid here", "INDENT": "is not indented as the lines around it"}


def added_errors(document: FileText, start: int, end: int, text: str) -> list[str]:
    """One line for each of the first errors that ``text`` in place of the bytes ``start``..``end`` adds.

    Raises RequestError for a file in an unknown language.
    """
    language = language_for(str(document.path))
    if language is None:
        raise RequestError(f"{document.path}: no language is known for this name, so its syntax is not checked")
    old = Source(str(document.path), document.text, language)
    data = old.data
    new = Source(old.path, (data[:start] + text.encode() + data[end:]).decode(), language)
    known = carried_over(_faults(old), [Splice(start, end, len(text.encode()))])
    added = sorted(_faults(new) - known, key=lambda fault: fault.start)
    if added:
        return [_line(new, fault) for fault in added[:MAX_NAMED]]
    compiles = COMPILES.get(language.name)
    if compiles is not None and compiles(old.data) and not compiles(new.data):
        return [f"the {language.name} compiler accepts the file, and does not accept it with this text"]
    return []


def _faults(source: Source) -> frozenset[Fault]:
    faults = tree_faults(source.tree)
    return faults | indentation_faults(source.tree, source.data) if source.language.columns else faults


def _line(source: Source, fault: Fault) -> str:
    line, column = source.position(fault.start)
    shown = source.slice(fault.start, fault.end).strip().partition("\n")[0][:60]
    if fault.kind.startswith("MISSING "):
        return f"line {line}, column {column}: {fault.kind.removeprefix('MISSING ')!r} is missing"
    return f"line {line}, column {column}: {shown!r} {KINDS.get(fault.kind, 'is not valid here')}"
