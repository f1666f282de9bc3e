"""The command ``names``: fills lines of held-out projects whose next name is declared only elsewhere.

That is in another file, or in a package. A case ends where that name begins. Each is filled with the signatures of what
packages offer, and besides with tokens that lead to known names.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Annotated, Literal

import msgspec
import typer
from tests.benchmarks.figures import Row, grouped, percentile, rated, show
from tests.benchmarks.held_out.projects import lay_out
from tests.benchmarks.records import Records

from lacuna_model.commands.program import JsonOption
from lacuna_model.core.names import NameEvidence
from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, InfillResult, Region
from lacuna_model.engine import Engine
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.snippets.chooser import SnippetChooser
from lacuna_model.snippets.format import Splitter
from lacuna_model.snippets.imports import Import, imports, module_file
from lacuna_model.snippets.sources import SnippetFile
from lacuna_model.workspace.known_names import known_names
from training.options import ModelOption

Kind = Literal["file", "package"]
Way = Literal["signatures", "soft"]
WAYS: tuple[Way, ...] = ("signatures", "soft")
Fill = Callable[[InfillRequest], InfillResult]
Read = Callable[[str], SnippetChooser]
READ_SECONDS = 60.0  # in which a project is read
BUDGET, MAX_TOKENS = 320, 48
_FAMILY = {"python": ("python",), "javascript": ("javascript",), "typescript": ("typescript", "tsx")}
_USE = re.compile(r"(?<![\w.$'\"])(?:([^\W\d]\w*)\.)?([^\W\d]\w{3,})")
_IMPORTING = re.compile(r"\s*(?:import|from|export)\b|.*\brequire\(")


class Case(msgspec.Struct, frozen=True):
    """A place of a file: the text before it and behind it, the rest of its line, and the name that it begins with."""

    language: str
    project: str
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
                    yield Case(language, str(project), source.path, kind, use[2], text[:cut], text[cut:end], text[end:])
                    break
        at += len(line) + 1


def _kind(chooser: SnippetChooser, source: SnippetFile, imported: Import, use: re.Match[str]) -> Kind | None:
    """Where the name of a use is declared; None where that is not told."""
    sources, packages = chooser.index.sources, chooser.packages
    file = module_file(imported, source.path, source.language, sources.by_stem)
    if file is not None:
        return "file" if any(sources.definitions_in(file, use[2])) else None
    folder = source.path.rpartition("/")[0]
    if not use[1]:
        return "package" if imported.name and packages.named(imported, source.language, folder) is not None else None
    inner = imported.name if source.language == "python" else ""
    wanted = Import(f"{imported.module}.{inner}" if inner else imported.module, use[2])
    return "package" if packages.named(wanted, source.language, folder) is not None else None


def read(project: str | Path) -> SnippetChooser:
    """What is known of a project."""
    chooser = SnippetChooser(Path(project))
    chooser.refresh()
    return chooser


def _filled(fill: Fill, tokenizer: Splitter, chooser: SnippetChooser, case: Case, way: Way) -> Filled:
    text, at = case.before + case.after, len(case.before.encode())
    chooser.forget(case.path)  # as if the file had just been opened
    snippets = chooser.choose(text, at, case.path, tokenizer=tokenizer, budget=BUDGET)
    request = InfillRequest(
        text,
        (Region(at, at, max_tokens=MAX_TOKENS),),
        FillGaps(open=True),
        path=f"{case.project}/{case.path}",
        snippets=snippets,
        options=DecodeOptions(names=way == "soft"),
        workspace=case.project if way == "soft" else "",
    )
    began = time.perf_counter()
    result = fill(request)
    ms = (time.perf_counter() - began) * 1e3
    index = chooser.index
    known = known_names(request, request.regions[0], index.sources, chooser.packages, case.path)
    line = (result.fills[0] if result.status == "ok" else "").partition("\n")[0].rstrip()
    uses = known.uses(line) if known is not None else None
    unknown = NameEvidence.of(uses).unknown if uses is not None else ()
    return Filled(case, way, line, line == case.truth.rstrip(), unknown, ms)


def measure(
    fill: Fill, tokenizer: Splitter, wanted: Sequence[Case], read: Read, records: Records[Filled]
) -> list[Filled]:
    """Each case filled in each way, and what else was recorded; ``read`` gives what is known of a project."""
    projects = dict.fromkeys(case.project for case in wanted)
    questions = [(case, way) for project in projects for case in wanted if case.project == project for way in WAYS]
    chooser = lru_cache(1)(read)
    return records.run(
        "places",
        questions,
        lambda one: _filled(fill, tokenizer, chooser(one[0].project), *one),
        key=lambda one: one,
        answered=lambda one: (one.case, one.way),
    )


def rows(found: Sequence[Filled]) -> list[Row]:
    """The figures by language, then by kind and over all, of each way."""
    groups = {**grouped(found, lambda one: one.case.language), **grouped(found, lambda one: one.case.kind)}
    result = []
    for name, group in groups.items():
        for way in dict.fromkeys(one.way for one in group):
            own = [one for one in group if one.way == way]
            row: Row = {
                "places": name,
                "way": way,
                "n": len(own),
                **rated("right first lines", sum(one.right for one in own), len(own)),
                "unknown names per 100": 100 * sum(len(one.unknown) for one in own) / len(own),
                "lines with one": sum(bool(one.unknown) for one in own),
                "ms p50": percentile([one.ms for one in own], 50),
            }
            result.append(row)
    return result


def names(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="The corpus of `python -m training corpus`.")],
    projects: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where its held-out projects are laid out.")],
    count: Annotated[int, typer.Option("--count", min=1, help="Places per language and kind.")] = 40,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Draw the places with this random seed.")] = 0,
    records: Annotated[
        Path | None, typer.Option("--records", help="Write every fill to this JSONL file, and go on from it.")
    ] = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill lines of held-out projects from a name on that is declared only in another file, or in a package.

    With signatures of packages; soft: names that are nowhere give way to likely known ones besides. Fills that are
    recorded already are not made again.
    """
    wanted = cases(lay_out(corpus, projects), count, seed)
    engine = Engine.load(model)

    def known(project: str) -> SnippetChooser:
        return engine.workspaces.read(project, READ_SECONDS).snippets

    with Records(records, Filled) as kept:
        show(rows(measure(engine.fill, engine.model.tokenizer, wanted, known, kept)), json_output)


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("names")(names)
