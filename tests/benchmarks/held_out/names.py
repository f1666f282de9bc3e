"""Fills lines of held-out projects whose next name is declared only elsewhere: in another file, or in a package.

A case ends where that name begins. Each is filled with and without the signatures of what packages offer; with
several candidates of which the one with the fewest unknown names is taken; and with tokens that lead to known names.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Literal

import msgspec
from rich.table import Table
from tests.benchmarks.tasks.scores import wilson

from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, InfillResult, Region, Snippet
from lacuna_model.snippets.chooser import SnippetChooser
from lacuna_model.snippets.format import Splitter
from lacuna_model.snippets.imports import Import, imports, module_file
from lacuna_model.snippets.sources import SnippetFile
from lacuna_model.workspace.known_names import known_names

Kind = Literal["file", "package"]
Way = Literal["without", "signatures", "ranked", "soft"]
WAYS: tuple[Way, ...] = ("without", "signatures", "ranked", "soft")
Fill = Callable[[InfillRequest], InfillResult]
Read = Callable[[Path], SnippetChooser]
BUDGET, MAX_TOKENS, CANDIDATES = 320, 48, 3
_FAMILY = {"python": ("python",), "javascript": ("javascript",), "typescript": ("typescript", "tsx")}
_USE = re.compile(r"(?<![\w.$'\"])(?:([^\W\d]\w*)\.)?([^\W\d]\w{3,})")
_IMPORTING = re.compile(r"\s*(?:import|from|export)\b|.*\brequire\(")


class Case(msgspec.Struct, frozen=True):
    """A place of a file: the text before it and behind it, the rest of its line, and the name that it begins with."""

    language: str
    project: Path
    path: str
    kind: Kind
    name: str
    before: str
    truth: str
    after: str


class Filled(msgspec.Struct, frozen=True):
    """The first line of a fill, whether it is right, how many of its names are unknown, and the time that it took."""

    case: Case
    way: Way
    line: str
    right: bool
    unknown: tuple[str, ...]
    ms: float


def cases(projects: Iterable[tuple[str, Path]], count: int, seed: int) -> list[Case]:
    """``count`` cases of each language and kind, as far as there are so many; the same arguments give the same."""
    found: dict[tuple[str, Kind], list[Case]] = {}
    for language, project in projects:
        chooser = read(project)
        for source in list(chooser.index.sources.files.values()):
            if source.language in _FAMILY[language]:
                for case in _in_file(chooser, source, language, project):
                    found.setdefault((language, case.kind), []).append(case)
    rng = Random(seed)
    return [case for key in sorted(found) for case in rng.sample(found[key], min(count, len(found[key])))]


def _in_file(chooser: SnippetChooser, source: SnippetFile, language: str, project: Path) -> Iterator[Case]:
    text = "\n".join(source.lines)
    known = imports(text, source.language)
    code = "\n".join(line for line in source.lines if not _IMPORTING.match(line))
    uses: dict[str, int] = {}
    for word in re.findall(r"\w+", code):
        uses[word] = uses.get(word, 0) + 1
    at = 0
    for line in source.lines:
        if not _IMPORTING.match(line) and not line.lstrip().startswith(("#", "//", "*", "/*", "@")):
            for use in _USE.finditer(line):
                imported = known.get(use[1] or use[2])
                kind = _kind(chooser, source, imported, use) if imported is not None and uses[use[2]] == 1 else None
                if kind is not None and line[use.end() :].strip(" ,"):
                    cut, end = at + use.start(2), at + len(line)
                    yield Case(language, project, source.path, kind, use[2], text[:cut], text[cut:end], text[end:])
                    break
        at += len(line) + 1


def _kind(chooser: SnippetChooser, source: SnippetFile, imported: Import, use: re.Match[str]) -> Kind | None:
    """Where the name of a use is declared; None where that is not told."""
    sources, packages = chooser.index.sources, chooser.packages
    file = module_file(imported, source.path, source.language, sources.by_stem)
    if file is not None:
        return "file" if any(sources.definitions_in(file, use[2])) else None
    assert packages is not None
    folder = source.path.rpartition("/")[0]
    if not use[1]:
        return "package" if imported.name and packages.named(imported, source.language, folder) is not None else None
    inner = imported.name if source.language == "python" else ""
    wanted = Import(f"{imported.module}.{inner}" if inner else imported.module, use[2])
    return "package" if packages.named(wanted, source.language, folder) is not None else None


def measure(
    fill: Fill,
    tokenizer: Splitter,
    wanted: Sequence[Case],
    ways: Sequence[Way],
    read: Read,
    done: Collection[tuple[Case, Way]] = (),
) -> Iterator[Filled]:
    """Fill each case in each way, but those that are ``done``; ``read`` gives what is known of a project."""
    left = [(case, way) for case in wanted for way in ways if (case, way) not in done]
    for project in dict.fromkeys(case.project for case, _ in left):
        chooser = read(project)
        yield from (_filled(fill, tokenizer, chooser, *one) for one in left if one[0].project == project)


def read(project: Path) -> SnippetChooser:
    """What is known of a project."""
    chooser = SnippetChooser(project, background=False)
    chooser.refresh()
    return chooser


def _filled(fill: Fill, tokenizer: Splitter, chooser: SnippetChooser, case: Case, way: Way) -> Filled:
    text, at = case.before + case.after, len(case.before.encode())
    snippets = _snippets(chooser, tokenizer, case, text, at, way)
    request = InfillRequest(
        text,
        (Region(at, at, max_tokens=MAX_TOKENS),),
        FillGaps(CANDIDATES if way == "ranked" else 1, open=True),
        path=str(case.project / case.path),
        snippets=snippets,
        options=DecodeOptions(names=way == "soft"),
        workspace=str(case.project) if way == "soft" else "",
    )
    began = time.perf_counter()
    result = fill(request)
    ms = (time.perf_counter() - began) * 1e3
    index = chooser.index
    known = known_names(request, request.regions[0], index.sources, chooser.packages, case.path)
    fills = [result.fills, *result.alternatives] if result.status == "ok" else [("",)]
    lines = [one[0].partition("\n")[0].rstrip() for one in fills]
    found = [known.evidence(line) if known is not None else None for line in lines]
    unknown = [one.unknown if one is not None else () for one in found]
    best = min(range(len(lines)), key=lambda number: len(unknown[number]))
    return Filled(case, way, lines[best], lines[best] == case.truth.rstrip(), unknown[best], ms)


def _snippets(
    chooser: SnippetChooser, tokenizer: Splitter, case: Case, text: str, at: int, way: Way
) -> tuple[Snippet, ...]:
    packages = chooser.packages
    chooser.remove(case.path)  # as if the file had just been opened
    try:
        chooser.packages = None if way == "without" else packages
        return chooser.choose(text, at, case.path, tokenizer=tokenizer, budget=BUDGET)
    finally:
        chooser.packages = packages


def table(found: Sequence[Filled]) -> Table:
    """The figures by language, kind and way."""
    shown = Table("places", "way", "right first lines", "95 %", "unknown names per 100", "p50 ms")
    groups: Mapping[str, Sequence[Filled]] = {
        "all": found,
        **{kind: [one for one in found if one.case.kind == kind] for kind in ("file", "package")},
        **{name: [one for one in found if one.case.language == name] for name in _FAMILY},
    }
    for name, group in groups.items():
        for way in dict.fromkeys(one.way for one in group):
            own = [one for one in group if one.way == way]
            right = sum(one.right for one in own)
            low, high = wilson(right, len(own))
            unknown = sum(len(one.unknown) for one in own)
            ms = sorted(one.ms for one in own)[len(own) // 2]
            shown.add_row(
                f"{name} ({len(own)})",
                way,
                f"{right} ({right / len(own):.1%})",
                f"{low:.1%} to {high:.1%}",
                f"{100 * unknown / len(own):.1f}",
                f"{ms:.0f}",
            )
    return shown


def decoded(line: bytes) -> Filled:
    """A fill as it was recorded."""
    return msgspec.json.decode(line, type=Filled, dec_hook=lambda kind, value: kind(value))
