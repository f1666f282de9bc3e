"""The command ``functions``: real C++ functions with one, two or three gaps, filled by a model and compiled by g++.

This is the manner of HumanEval-MRI-Cpp (arXiv 2508.10111): a function, the spans that were cut from it, and whether the
filled function is well-formed and compiles. The functions come from given files; those that need no other declarations
than the standard library's are used.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Literal

import msgspec
import numpy as np
from rich.table import Table
from tests.benchmarks.constraint.syntax import Filler, assembled
from tests.benchmarks.constraint.syntax_oracles import C_PARSE_ERROR, SECONDS
from tests.benchmarks.constraint.synthetic import Case, cut_case

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest
from lacuna_model.languages.registry import require_language
from lacuna_model.syntax import parses
from lacuna_model.tokens.tokenizer import Tokenizer

Way = Literal["without", "with"]
WAYS: tuple[Way, ...] = ("without", "with")
HEADERS = ("algorithm", "cmath", "cstdint", "cstdio", "cstring", "map", "memory", "set", "sstream", "string", "vector")
SHORTEST, LONGEST = 5, 40  # lines of a function
NAMESPACES = ("translation_unit", "namespace_definition", "declaration_list")


class Tried(msgspec.Struct, frozen=True):
    """A filled function: whether it was delivered, parses (tree-sitter), is well-formed and compiles (g++)."""

    way: Way
    gaps: int
    delivered: bool
    parses: bool
    well_formed: bool
    compiles: bool
    exact: bool


class Row(msgspec.Struct, frozen=True):
    """The counts of all functions with so many gaps; a refused fill counts as none of parsed, well-formed, compiled."""

    way: Way
    gaps: int
    functions: int
    refused: int
    parses: int
    well_formed: int
    compiles: int
    exact: int


class Compiler(AbstractContextManager["Compiler"]):
    """g++ with the standard library's headers compiled beforehand. Raises RequestError if there is no g++."""

    def __init__(self) -> None:
        if shutil.which("g++") is None:
            raise RequestError("this benchmark needs g++, which is not installed")
        self._folder = TemporaryDirectory()
        self._header = Path(self._folder.name) / "all.h"
        self._header.write_text("".join(f"#include <{name}>\n" for name in HEADERS) + "using namespace std;\n")
        subprocess.run(self._command("c++-header", str(self._header)), timeout=SECONDS, check=True)

    def _command(self, kind: str, *arguments: str) -> list[str]:
        return ["g++", "-w", "-std=c++20", "-x", kind, *arguments]

    def judge(self, text: bytes) -> tuple[bool, bool]:
        """Return whether a text has no parse error, and whether it compiles."""
        command = self._command("c++", "-include", str(self._header), "-fsyntax-only", "-")
        done = subprocess.run(command, input=text, capture_output=True, timeout=SECONDS, check=False)
        return C_PARSE_ERROR.search(done.stderr) is None, done.returncode == 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()


def functions(texts: Sequence[bytes], compiler: Compiler) -> Iterator[bytes]:
    """Yield the functions of some texts that compile on their own, each once."""
    language, seen = require_language("cpp"), set[bytes]()
    for text in texts:
        waiting = [language.parser().parse(text).root_node]
        while waiting:
            node = waiting.pop()
            if node.type in NAMESPACES or node.type.startswith("preproc_if"):
                waiting += reversed(node.children)
            elif node.type == "function_definition" and not node.has_error:
                own = re.sub(rb"\n[ \t]*\n", b"\n", text[node.start_byte : node.end_byte]) + b"\n"
                if SHORTEST <= own.count(b"\n") <= LONGEST and own not in seen and compiler.judge(own)[1]:
                    seen.add(own)
                    yield own


def cases(found: Sequence[bytes], tokens: Tokenizer, *, gaps: int, slots: int, seed: int) -> Iterator[Case]:
    """Yield each function with ``gaps`` random spans of at most ``slots`` tokens cut out, where they have room."""
    language, rng = require_language("cpp"), np.random.default_rng([seed, gaps])
    for text in found:
        case = cut_case(text, language, tokens, rng, gaps=gaps, slots=int(rng.integers(1, slots + 1)), shape="tokens")
        if case is not None:
            yield case


def tried(case: Case, tokens: Tokenizer, fill: Filler, compiler: Compiler) -> Iterator[Tried]:
    """Yield what becomes of a function without and with the constraint."""
    truths = [tokens.decode_bytes(truth).decode() for truth in case.truths]
    for way in WAYS:
        options = DecodeOptions(syntax=way == "with")
        request = InfillRequest(case.text.decode(), case.regions, language="cpp", options=options)
        loop = fill(request)
        while True:
            try:
                next(loop)
            except StopIteration as end:
                result = end.value
                break
        text = assembled(case, result.fills) if result.status == "ok" else b""
        formed, compiled = compiler.judge(text) if text else (False, False)
        exact = result.status == "ok" and list(result.fills) == truths
        yield Tried(way, len(truths), bool(text), bool(text) and parses(text, case.language), formed, compiled, exact)


def rows(outcomes: Sequence[Tried]) -> list[Row]:
    """Return the counts, by number of gaps and way."""
    found = []
    for gaps in sorted({one.gaps for one in outcomes}):
        for way in WAYS:
            own = [one for one in outcomes if (one.gaps, one.way) == (gaps, way)]
            found.append(
                Row(
                    way,
                    gaps,
                    functions=len(own),
                    refused=sum(not one.delivered for one in own),
                    parses=sum(one.parses for one in own),
                    well_formed=sum(one.well_formed for one in own),
                    compiles=sum(one.compiles for one in own),
                    exact=sum(one.exact for one in own),
                )
            )
    return found


def table(found: Sequence[Row]) -> Table:
    """Return the rows as a table."""
    grid = Table(title="C++ functions with gaps")
    for name in Row.__struct_fields__:
        grid.add_column(name.replace("_", " "), justify="left" if name == "way" else "right")
    for row in found:
        grid.add_row(*map(str, msgspec.structs.astuple(row)))
    return grid
