"""Open delivery: what a person who types is shown can be read after what stands there, and nothing is put in."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.scripted import sure

from lacuna_model.core.constraint import FillSoFar, Taken
from lacuna_model.syntax import LANGUAGES, Language
from lacuna_model.syntax.readable import Readable, Reading

from .conftest import SmallTokens
from .drive import require

GO = "package p\n\nfunc f() (err error) {\n\tx, err := g()\n\t"
PYTHON = "def f(x):\n    call(\n        a,\n"
FULL = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


@pytest.mark.parametrize(
    ("language", "before", "fill", "reads"),
    [
        ("go", GO, "if err != nil {", True),
        ("go", GO, "if err != nil {\n\t\treturn err\n\t}\n", True),
        ("go", GO, "if err != nil }", False),
        ("go", GO, "return )", False),
        ("cpp", "#pragma once\n", "#include <vec", True),
        ("cpp", "#pragma once\n", "#include <vector>", True),
        ("go", GO, "retur", True),
        ("go", GO, 'fmt.Println("half of a', True),
        ("go", GO, 'fmt.Println("a line end in a string\n', False),
        ("python", PYTHON + "        ", "b,", True),
        ("python", PYTHON + "        ", "b=[\n            1,", True),
        ("python", PYTHON + "    ", "),", True),
        ("python", PYTHON + "    ", "}", False),
        ("python", "def f(x):\n    ", "if x ==:\n", False),
        ("python", "def f(x):\n    ", "if x:\n        return 1\n    else:\n        return", True),
        ("python", "try:\n    f()\n", "except OSError as error:", True),
        ("python", 'def f(x):\n    """A (docstring', " that goes on)", True),
        ("typescript", "const a = items.map(\n    ", "(item) => {", True),
        ("typescript", "const a = items.map(\n    ", "item] =>", False),
        ("typescript", "const s = `Hello ${", "name", True),
        ("typescript", "function f() {\n  if (a) {\n    ", "const parts = path.split(/[\\\\", True),
        ("rust", "fn f() {\n    match x {\n        ", "Some(y) => {", True),
        ("rust", "fn f() {\n    match x {\n        ", "'*", True),
        ("rust", "fn f() {\n    match x {\n        ", "'\\n", True),
        ("rust", "fn f() {\n    match x {\n        ", "'*)", False),
        ("rust", "fn f() {\n    let x = ", '"two\n    lines";\n', True),
        ("java", "class A {\n  String a = ", '"""\n    b\n    """;\n', True),
        ("java", "class A {\n  String a = ", '"b\n', False),
        ("tsx", "const a = ", '<b c="d\n  e"/>;\n', True),
        ("csharp", "class A {\n    readonly List<int> a = ", "new List<int>();\n", True),
        ("bash", "for a in b; do\n  c\nd", "one\n", True),
        ("bash", "for a in b; do\n  if c; then\n    d\n  f", "i\ndone\ne", True),
        ("bash", "c\nd", "one\n", False),
        ("bash", "", "if [ $# -lt 1 ]; then\n  exit 1\nfi\n", True),
        ("bash", "", "for i in ${#a[@]} 2; do\n  echo done\ndone\n", True),
        ("bash", "", 'for f in *; do if [ -f "$f" ]; then echo "$f"; fi; done\n', True),
        ("bash", "", "if a; then for b in c; do d; done; fi\n", True),
        ("bash", "", "for f in *; do echo x; fi\n", False),
        ("lua", "", "for _, v in ipairs(t) do if v == x then return true end end\n", True),
        ("lua", "", "if a then for i = 1, 2 do f(i) end end\n", True),
        ("lua", "", "local s = [[\nit's\n]]\n", True),
        ("ruby", "def x\n  ", "@x ||= begin\n    load\n  end\nend\n", True),
        ("ruby", "class A\n  ", "private def f(r)\n    g({ start: 1, end: 5 })\n  end\nend\n", True),
        ("ruby", "def f(r)\n  ", "a = if r.end > 1 then :end else 2 end\nend\n", True),
        ("ruby", "class A\n  ", "validates :a, if: :b\nend\n", True),
        ("csharp", "class A\n{\n    ", 'string q = @"SELECT *\nFROM t";\n', True),
        ("csharp", "class A\n{\n    ", 'string q = "SELECT *\nFROM t";\n', False),
        ("javascript", "const a = 1;\n", "const b = xs.filter((s) => /\\)$/.test(s));\n", True),
        ("cpp", "int main() {\n  ", "wait(1'000);\n  return 0;\n}\n", True),
        ("python", "def f(x):\n    if x:\n", "        return", True),
        ("python", "def f(x):\n    if x:\n", "    return", False),
        ("python", "def f(x):\n    if x:\n", "    ", True),
        ("python", "def f(x):\n    if (x and\n            y):\n", "        return", True),
        ("python", "def f(x):\n    if (x and\n            y):\n", "    return", False),
        ("python", "def f(x):\n    ", "if x:\n    y", False),
        ("python", "def f(x):\n    ", "a = {b:\n c", True),
        ("python", "x = 1  # thus:\n", "y = 2", True),
        ("python", "def f(x):\n    x = 1\n", "        return", False),
        ("python", "def f(x):\n    x = 1\n        ", "return", True),
        ("python", "def f(x):\n    x = [\n  1,\n ]\n", "    return", True),
        ("python", 'def f(x):\n    """A\n  b."""\n', "    return", True),
        ("python", "def f(x):\n    x = 1 + \\\n", "        2", True),
        ("python", "def f(x):\n    x = 1 + \\\n  2\n", "    return", True),
        ("python", "x = ", "1e", True),
        ("python", "x = ", "1e-", True),
        ("python", "x = ", "0x", True),
    ],
)
def test_a_beginning_reads_where_the_grammar_can_go_on(language: str, before: str, fill: str, reads: bool) -> None:
    assert Reading(before.encode(), require(language)).reads(fill.encode()) == reads


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES])
def test_whatever_stands_in_a_file_can_be_read_there(name: str, samples: dict[str, tuple[Language, bytes]]) -> None:
    if name not in samples:
        pytest.skip("no sample of this language")
    language, text = samples[name]
    lines = [match.start() for match in re.finditer(rb"(?<=\n)[ \t]*\S", text)][3:]
    for start in lines[:: max(len(lines) // 8, 1)]:
        end = text.find(b"\n", start)
        assert Reading(text[:start], language).reads(text[start : end + 1]), text[start:end]


def test_a_fill_ends_before_the_token_that_cannot_be_read(samples: dict[str, tuple[Language, bytes]]) -> None:
    tokens = SmallTokens([text.decode() for _, text in samples.values()])
    readable = Readable(GO.encode(), require("go"), tokens)
    ids = tokens.encode("return err)")
    assert readable.take(0, [FillSoFar(most=len(ids) + 2)], sure(ids)) == Taken(len(ids) - 1, ends=True)
    assert readable.verdict([FillSoFar(tuple(ids), ended=True)], late=False).fills == ("return err",)


@FULL
@given(text=st.text(alphabet="ab ()[]{}\"'`\n\\=:,;", max_size=30), cut=st.integers(0, 30))
def test_the_answer_is_a_texts_beginning(text: str, cut: int, samples: dict[str, tuple[Language, bytes]]) -> None:
    tokens = SmallTokens(["ab"])
    for name in ("python", "typescript", "go", "html"):
        readable = Readable(text[:cut].encode(), require(name), tokens)
        written = FillSoFar(tuple(tokens.encode(text[cut:])), ended=True)
        (fill,) = readable.verdict([written], late=False).fills or (None,)
        assert fill is not None
        assert text[cut:].startswith(fill)


@pytest.mark.parametrize(
    ("language", "before", "statements"),
    [
        ("python", "class A:\n    def hi(self, name):\n        ", ("print(name)", "def bye(self, name):")),
        ("python", "def f(x):\n    ", ("x = 1", "return x")),
        ("javascript", "function f(x) {\n  ", ("g(x)", "return x")),
        ("typescript", "function f(x: number) {\n  ", ("const a = x", "return a")),
        ("tsx", "const a = 1\n", ("const b = <i/>", "const c = 2")),
        ("go", GO, ("x := g()", "return x")),
        ("kotlin", "fun f(x: Int): Int {\n    ", ("val a = x", "val b = a")),
        ("toml", "", ("a = 1", "b = 2")),
        ("c", "", ("#include <a.h>", "int x;")),
    ],
)
def test_what_line_ends_part_is_not_read_on_one_line(language: str, before: str, statements: tuple[str, str]) -> None:
    reading = Reading(before.encode(), require(language))
    own, indent = "\t".join(statements), before[before.rfind("\n") + 1 :]
    assert reading.reads(f"\n{indent}".join(statements).encode())
    assert not reading.reads(f"{own}\n".encode())


@pytest.mark.parametrize(
    ("language", "before", "fill"),
    [
        ("javascript", "const f = () => ", "{ return 1 }\n"),
        ("javascript", "class A ", "{ x = 1 }\n"),
        ("typescript", "interface A ", "{ b: string; f(): void }\n"),
        ("go", "package p\n\nfunc f() int ", "{ return 1 }\n"),
        ("kotlin", "fun f(): Int ", "{ return 1 }\n"),
        ("ruby", "x = y.map ", "{ |a| a + 1 }\n"),
        ("python", "def f(x):\n    ", "if x: return 1\n"),
        ("php", "<?php if ($a) { f(1) ?>", "b\n"),
    ],
)
def test_a_block_on_one_line_ends_its_last_statement(language: str, before: str, fill: str) -> None:
    assert Reading(before.encode(), require(language)).reads(fill.encode())
