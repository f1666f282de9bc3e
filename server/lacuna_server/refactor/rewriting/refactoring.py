"""Defines a refactoring (its title, its languages and how it finds its places) and the kinds of refactorings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MORE_TOKENS, EditLines, Region
from lacuna_model.languages.parsing import UnparsableError
from lacuna_server.files import unwritable
from lacuna_server.refactor.places.gather import by_query, by_ranges, by_readings, query_names
from lacuna_server.refactor.places.matching import WHOLE, PatternMatch, Span
from lacuna_server.refactor.places.pattern import ParsedPattern, pattern_names, readings
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.expand import rewrites
from lacuna_server.refactor.rewriting.rewrite import (
    TOO_DEEP,
    LeftOut,
    Rewrite,
    Template,
    disjoint,
    first_line,
    parse_template,
)

Found: TypeAlias = tuple[Source, Rewrite | LeftOut]
BROKEN = "the code at this place does not parse; not changed"


@dataclass(frozen=True, slots=True)
class Refactoring:
    """A refactor that is ready to run. ``find`` gets all files together; empty ``languages`` means any language.

    If it ``reads_trees``, it gets only files that can be parsed; otherwise ``find`` itself leaves out the others.
    """

    title: str
    find: Callable[[Sequence[Source]], Iterable[Found]]
    languages: frozenset[str] = frozenset()
    # Whether it needs the parse tree of every file, or only of files in which it finds a place.
    reads_trees: bool = True
    # Says what was looked for, where no file has a place.
    unfound: Callable[[Sequence[Source]], str] = lambda sources: ""


def by_structure(pattern: str, template: str, language: str = "") -> Refactoring:
    """Returns a refactoring of all matches of a structural pattern, in the files of one language if that is given.

    Its ``find`` raises RequestError for sources of several languages, and for a pattern that is no code of theirs.
    """
    parsed = replace(parse_template(template, pattern_names(pattern) | {WHOLE}), pattern=pattern)

    def find(sources: Sequence[Source]) -> Iterable[Found]:
        found: list[tuple[Source, list[PatternMatch] | LeftOut]] = []
        for group in _readings(pattern, sources):
            found = [(source, _places(source, group)) for source in sources]
            if any(isinstance(matches, list) and matches for _, matches in found):
                _refuse_unbound(parsed, group)
                break
        for source, matches in found:
            if isinstance(matches, LeftOut):
                yield source, matches
            elif matches:  # of any other file no tree is needed
                yield from ((source, LeftOut(match.start, BROKEN)) for match in matches if match.broken)
                sound = [match for match in matches if not match.broken]
                yield from ((source, item) for item in rewrites(source, sound, parsed))

    def unfound(sources: Sequence[Source]) -> str:
        first = next(iter(_readings(pattern, sources)), ())
        kinds = dict.fromkeys(f"{one.kind} ({one.context})" for one in first)
        return f"no place matches the pattern, read as {' or '.join(kinds)}" if kinds else ""

    languages = frozenset({language} if language else ())
    return Refactoring(f"{pattern} → {template}", find, languages, reads_trees=False, unfound=unfound)


def _readings(pattern: str, sources: Sequence[Source]) -> tuple[tuple[ParsedPattern, ...], ...]:
    languages = {source.language.name: source.language for source in sources}
    if len(languages) > 1:
        raise RequestError(f"files of several languages ({', '.join(sorted(languages))}); say which with --lang")
    return next((readings(pattern, language) for language in languages.values()), ())


def _places(source: Source, group: Sequence[ParsedPattern]) -> list[PatternMatch] | LeftOut:
    try:
        return by_readings(source, group)
    except UnparsableError as error:
        return LeftOut(0, str(error))
    except RecursionError:
        return LeftOut(0, TOO_DEEP)


def _refuse_unbound(template: Template, group: Sequence[ParsedPattern]) -> None:
    """Raises RequestError where the template uses a metavariable that is no node of the pattern."""
    bound = frozenset[str].intersection(*(reading.bound() for reading in group)) | {WHOLE}
    for name in sorted(template.names - bound):
        raise RequestError(f"${name} stands within a word, string or comment of the pattern; it must be a whole node")


def by_syntax(query: str, template: str, language: str) -> Refactoring:
    """Returns a refactoring of all matches of a tree-sitter query in the files of a language."""
    parsed = parse_template(template, query_names(query) | {WHOLE})

    def find(sources: Sequence[Source]) -> Iterable[Found]:
        return ((source, item) for source in sources for item in rewrites(source, by_query(source, query), parsed))

    return Refactoring(f"query → {template}", find, frozenset({language}))


def by_place(spans: Mapping[str, Sequence[Span]], template: str) -> Refactoring:
    """Returns a refactoring of byte ranges, given by the paths of their sources."""
    parsed = parse_template(template, frozenset({WHOLE}))

    def find(sources: Sequence[Source]) -> Iterable[Found]:
        places = ((source, by_ranges(source, spans.get(source.path, ()))) for source in sources)
        return ((source, item) for source, found in places for item in rewrites(source, found, parsed, replaced=True))

    return Refactoring(f"ranges → {template}", find)


def by_instruction(refactoring: Refactoring, instruction: str) -> Refactoring:
    """Returns a refactoring of the same places, each with its whole lines, which the engine rewrites by an instruction.

    Places that share a line are one place. Raises RequestError where the instruction is empty.
    """
    EditLines.by(instruction)

    def find(sources: Sequence[Source]) -> Iterable[Found]:
        lines: dict[str, tuple[Source, list[Span]]] = {}
        for source, item in refactoring.find(sources):
            if isinstance(item, LeftOut):
                yield source, item
            elif not item.support:
                lines.setdefault(source.path, (source, []))[1].append(whole_lines(source.data, item.start, item.end))
        region = Region(0, 0, max_tokens=MORE_TOKENS)
        for source, spans in lines.values():
            for start, end in joined(spans):
                label = first_line(source.data[start:end].decode())
                yield source, Rewrite(start, end, (region,), label, instruction=instruction)

    return replace(refactoring, title=first_line(instruction), find=find)


def whole_lines(text: bytes, start: int, end: int) -> Span:
    """Returns the bytes of the lines from that of ``start`` to that of the byte before ``end``, with their ends."""
    last = text.find(b"\n", max(end - 1, start))
    return text.rfind(b"\n", 0, start) + 1, len(text) if last < 0 else last + 1


def joined(spans: Iterable[Span]) -> list[Span]:
    """Returns the spans in order, with those that overlap as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def places(
    refactoring: Refactoring, sources: Sequence[Source], advance: Callable[[], None] = lambda: None
) -> tuple[list[tuple[Source, list[Rewrite]]], list[str]]:
    """Returns the disjoint places of every file that has any, and a line about each place or file that is left out.

    A file that must not be written is left out; a document that is open is its editor's to write.
    ``advance`` is called for each place that is found.
    """
    wanted = [
        source for source in sources if not refactoring.languages or source.language.name in refactoring.languages
    ]
    left_out: list[str] = []
    for source in wanted if refactoring.reads_trees else ():
        try:
            _ = source.tree
        except UnparsableError as error:
            left_out.append(f"{source.path}: {error}")
            wanted = [other for other in wanted if other is not source]
    found: dict[str, tuple[Source, list[Rewrite]]] = {source.path: (source, []) for source in wanted}
    num_found = 0
    for source, item in refactoring.find(wanted):
        num_found += 1
        advance()
        if isinstance(item, Rewrite):
            found[source.path][1].append(item)
        else:
            line, column = source.position(item.at)
            left_out.append(f"{source.path}:{line}:{column}: {item.reason}")
    if not num_found and (said := refactoring.unfound(wanted)):
        left_out.append(said)
    chosen = []
    for source, all_rewrites in found.values():
        kept, refused = disjoint(source, all_rewrites)
        left_out += refused
        reason = unwritable(Path(source.path)) if kept and source.version is None else ""
        if reason:
            left_out.append(f"{source.path} {reason}; not changed")
        elif kept:
            chosen.append((source, kept))
    return chosen, left_out
