from pathlib import Path

import pytest

from lacuna_model.core.params import InfillRequest, Region, Snippet
from lacuna_model.decode.gate import UNKNOWN, NameUse
from lacuna_model.languages.registry import language_for
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.sources import Sources
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.workspace.known_names import KnownNames
from lacuna_model.workspace.project import Project

BEFORE = """\
import json
import shop
from protocol import UsageInfo


class Report:
    def __init__(self, rows):
        self.rows = rows

    def write(self, folder):
        """
AFTER = """

    def close(self):
        return 1
"""


FILES = {
    "shop.py": "class Till:\n    def pay(self, amount):\n        return amount\n\n\ndef open_till():\n    pass\n",
    "shop.ts": "export function openTill(): void {}\n",
    "till.go": "package a\n\ntype Till struct {\n}\n",
    "till.rs": "pub struct Till {\n    a: u8,\n}\n",
}


def names(before: str, after: str = AFTER, path: str = "main.py", others: tuple[Snippet, ...] = ()) -> KnownNames:
    sources, at = Sources(), len(before.encode())
    for name, text in FILES.items():
        sources.put(name, text)
    request = InfillRequest(before + after, (Region(at, at),), path=path, snippets=others)
    language = language_for(path)
    assert language is not None
    return KnownNames(request, request.regions[0], language, sources, PackageIndex(Path("nowhere")), path)


def judged(known: KnownNames, fill: str) -> tuple[int, str]:
    """How many names of a fill are known, and those that are not: members of an unknown receiver behind a dot."""
    uses = known.uses(fill)
    assert uses is not None
    assert uses == known.uses(fill)
    unknown = [f"{'.' if one.kind == 'members' else ''}{one.name}" for one in uses if one.kind in UNKNOWN]
    return len(uses) - len(unknown), " ".join(unknown)


@pytest.mark.parametrize(
    ("before", "fill", "expected"),
    [
        ("", "usage = UsageInfo(folder)", (2, "")),
        ("", "usage = Usage(folder)", (1, "Usage")),
        ("", "for row in self.rows:\n            print(row)", (3, "")),
        ("", "return [row for row in folder if row.strip()]", (1, "")),
        ("", "with open(folder) as file:\n            x = file", (2, "")),
        ("", "json.dump(self.rows, indent=1)", (4, "")),
        ("", "json.dumpf(self.rows)", (3, "dumpf")),
        ("", "shop.Till()", (2, "")),
        ("", "shop.Tills()", (1, "Tills")),
        ("", "Till()", (1, "")),
        ("", "self.closes()", (1, ".closes")),
        ("", "self.close()", (2, "")),
        ("", "self.total = lambda a, b=1: a + b", (1, "")),
        ("", "x = folder.pay(", (2, "")),
        ("", "'Nobody'  # reads Comments", (0, "")),
        ("", "", (0, "")),
        ("Us", "ageInfo(folder)", (2, "")),  # the name that is being written is judged as a whole
        ("Usag", "e(folder)", (1, "Usage")),
        ("json.dum", "ps(1)", (1, "")),
        ("print(\n            1,\n            ", "sep=folder)", (1, "")),  # an argument is no declaration
        ("", "print(((folder, Nobody", (2, "Nobody")),
        ("", ")]} ::= ''' Nobody", (0, "Nobody")),
        ("x = 'a' + \"b\"  # c\n        ", "Some(words)", (0, "Some words")),
        ("x = 1  # see ", "Some words", (0, "")),
        ('"""A text of', "Some words", (0, "")),
        ("'''A \"text\" of", "Some words", (0, "")),
        ('x = "half a ', "Some words", (0, "")),
        ("x = 'it\\'s ", "Some words", (0, "")),
    ],
)
def test_each_name_is_known_or_not(before: str, fill: str, expected: tuple[int, str]) -> None:
    assert judged(names(BEFORE + before), fill) == expected


def test_the_names_of_snippets_count_as_those_of_the_project() -> None:
    known = names(BEFORE, "", others=(Snippet("protocol.py", "class Usage:\n    pass\n"),))
    assert judged(known, "Usage(folder)") == (2, "")


def test_nothing_is_said_of_a_language_whose_names_are_not_known(tmp_path: Path, tokenizer: Tokenizer) -> None:
    project = Project(tmp_path, tokenizer)
    assert len(project.names_of(InfillRequest("", (Region(0, 0),), path="a.py"))) == 1
    for path in ("a.css", "nothing"):
        assert project.names_of(InfillRequest("", (Region(0, 0),), path=path)) == []


SCRIPT = """\
import { readFileSync } from 'node:fs';
import * as shop from './shop';

export class Report extends Base {
  rows: string[] = [];
  write(folder: string): void {
    """


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("const text = readFileSync(folder);", (2, "")),
        ("const text = readFile(folder);", (1, "readFile")),
        ("this.rows.map((row) => row.trim());", (2, "")),
        ("for (const [a, b] of Object.entries(folder)) { a(b); }", (3, "")),
        ("return new Map<string, Missing>();", (1, "Missing")),
        ("shop.openTill(); shop.shut();", (2, "shut")),
        (".filter(Boolean)", (2, "")),
        ("close(other: string): void {\n    other.trim();", (0, "")),
        ("const home = process.env.HOUSE;", (2, "")),
    ],
)
def test_names_of_scripts_are_known(fill: str, expected: tuple[int, str]) -> None:
    assert judged(names(SCRIPT, "\n  }\n}\n", "main.ts"), fill) == expected


def test_texts_of_many_rows_count_in_long_files() -> None:
    prose = "Some words\n\n" * 2_000
    code = "".join(f"def make{number}():\n    return spare{number}\n\n" for number in range(1_000))
    text = f'{code}x = """{prose}'
    assert judged(names(text), "Some(words)") == (0, "")
    row = f'{text}"""\n{code}'
    assert judged(names(row), "make7(spare999)") == (2, "")
    assert judged(names(row), "Some(words)") == (0, "Some words")
    assert judged(names(f'{text}""" + '), "Some") == (0, "Some")
    assert judged(names(f"{row}y = 'a "), "Some") == (0, "")


def test_uses_tell_where_they_end_so_that_beginnings_of_a_fill_can_be_judged() -> None:
    assert names("é = 1\n", "").uses("print(é, Nobody, print)") == (
        NameUse("print", "known", 5),
        NameUse("é", "known", 8),
        NameUse("Nobody", "nowhere", 16),
    )


def test_of_further_languages_plain_names_are_known() -> None:
    go = names('package a\n\nimport "fmt"\n\nfunc run(n int) error {\n\t', "\n}\n", "a.go")
    assert judged(go, "fmt.Println(len(Missing), n, Till{})") == (4, "Missing")
    rust = names("use std::fs;\n\nfn run(n: usize) {\n    ", "\n}\n", "a.rs")
    assert judged(rust, "let v: Vec<Missing> = vec![fs::read(n), Till];") == (5, "Missing")


@pytest.mark.parametrize(
    ("before", "fill", "start"),
    [
        ("", "x = shop.close_till()", 9),
        ("x = shop.", "close_till()", 0),
        ("x = shop.close", "_till()", -5),
        ("", "x = shop.open_till()", None),
        ("", "x = shop.close_till", None),  # it may go on
        ("", "shop.Till(); shop.Tills()", 18),
        ("", "other.close_till()", 0),  # no import makes the receiver known
        ("", "folder.close_till()", None),
        ("", "x = Usage(1)", 4),
        ("", "x = UsageInfo(1)", None),
        ("", "x: list[Usage] = []", 8),
        ("", "nothing(1)", 0),
        ("", "nothing = 1", None),
        ("", "one, Two = 1, 2", None),
        ("", "print([one.two for one in folder])", None),
        ("", "def nothing(one):\n            return one(1)", None),
        ("", "class Nothing(Report):\n            pass", None),
        ("", "for one in folder:\n            one(1)", None),
        ("", "from shop import Nothing as Other\n", None),
        ("", "import nothing.other\n", None),
        ("", "'nothing(1)'  # Nothing(2)", None),
        ("'a text of ", "nothing(1)", None),
        ("ret", " = []\n        for one in folder:\n            ret.append(one)", None),
    ],
)
def test_names_that_are_surely_nowhere_are_found_where_they_end(before: str, fill: str, start: int | None) -> None:
    assert names(BEFORE + before, "\n").nowhere(fill, 0) == start
    if start is not None:
        assert names(BEFORE + before, "\n").nowhere(fill, len(fill) - 1) is None or fill[-2:-1] == ")"


@pytest.mark.parametrize(
    ("fill", "start"),
    [
        ("shop.close();", 5),
        ("shop.openTill();", None),
        ("close(one: string): void {", None),  # a method, perhaps
        ("async close(", None),
        ("return close(1);", 7),
        ("function pass<Kind, Other>(one: Kind) {}", None),
        ("const one = new Missing();", 16),
        ("const { one, Two } = folder;", None),
        ("folder.map((one) => one.two(1));", None),
    ],
)
def test_names_of_scripts_are_surely_nowhere(fill: str, start: int | None) -> None:
    assert names(SCRIPT, "\n", "main.ts").nowhere(fill, 0) == start


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_names_are_nowhere_whatever_the_line_ends_are(end: str) -> None:
    fill = f"x = 1{end}        y = 2{end}        nothing(1)"
    assert names(BEFORE.replace("\n", end), "\n").nowhere(fill, 0) == fill.index("nothing")
    assert names(BEFORE.replace("\n", end), "\n").nowhere(fill, len(fill)) is None


def test_a_name_may_go_on_behind_the_gap() -> None:
    known = names(f"{BEFORE}na", "ue\n")
    assert known.ended("me = Tr") == "me = True\n"
    assert known.nowhere(known.ended("me = Tr"), 0) is None


def test_a_name_that_was_written_instead_of_another_one_is_told() -> None:
    known = names(f"{BEFORE}x = Us", "\n")
    known.wrote_instead("")
    known.wrote_instead("ageInfo(")
    assert [one.is_instead for one in known.uses("ageInfo(folder, folder)") or ()] == [True, True, False]


def test_beginnings_lead_to_known_names() -> None:
    known = names(BEFORE, "\n")
    assert known.leads("shop.open", 5)
    assert known.leads("shop.open_till()", 5)
    assert not known.leads("shop.open()", 5)
    assert not known.leads("shop.close", 5)
    assert not known.leads("shop.(", 5)
    assert known.leads("Usa", 0)
    assert not known.leads("Usage(", 0)
    assert known.leads("isinsta", 0)
    assert names(f"{BEFORE}Us", "\n").leads("ageIn", -2)
    assert (known.ends("shop.open", 5), known.ends("shop.open(", 5)) == (False, True)
