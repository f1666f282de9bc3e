from collections import Counter
from pathlib import Path

import pytest

from lacuna_model.core.params import InfillRequest, Region, Snippet
from lacuna_model.decode.gate import UNKNOWN, NameUse
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.sources import Sources
from lacuna_model.workspace.known_names import KnownNames, known_names

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
    found = known_names(request, request.regions[0], sources, PackageIndex(Path("nowhere")), path)
    assert found is not None
    return found


# How many names a fill uses that are known in each way, and those that are unknown.
NameEvidence = dict[str, object]


def evidence(known: KnownNames, fill: str) -> NameEvidence:
    uses = known.uses(fill)
    assert uses is not None
    assert uses == known.uses(fill)
    unknown = tuple(one.name for one in uses if one.kind in UNKNOWN)
    return {**Counter(one.kind for one in uses), **({"unknown": unknown} if unknown else {})}


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("usage = UsageInfo(folder)", NameEvidence(imported=1, declared=1)),
        ("usage = Usage(folder)", NameEvidence(declared=1, nowhere=1, unknown=("Usage",))),
        ("for row in self.rows:\n            print(row)", NameEvidence(declared=2, builtin=1)),
        ("return [row for row in folder if row.strip()]", NameEvidence(declared=1)),
        ("with open(folder) as file:\n            x = file", NameEvidence(declared=1, builtin=1)),
        ("json.dump(self.rows, indent=1)", NameEvidence(declared=2, imported=1, package=1)),
        ("json.dumpf(self.rows)", NameEvidence(declared=2, imported=1, nowhere=1, unknown=("dumpf",))),
        ("shop.Till()", NameEvidence(imported=1, project=1)),
        ("shop.Tills()", NameEvidence(imported=1, nowhere=1, unknown=("Tills",))),
        ("Till()", NameEvidence(project=1)),
        ("self.closes()", NameEvidence(declared=1, members=1, unknown=("closes",))),
        ("self.close()", NameEvidence(declared=2)),
        ("self.total = lambda a, b=1: a + b", NameEvidence(declared=1)),
        ("x = folder.pay(", NameEvidence(declared=1, project=1)),
        ("'Nobody'  # reads Comments", NameEvidence()),
        ("", NameEvidence()),
    ],
)
def test_each_name_is_known_by_where_it_is_declared(fill: str, expected: NameEvidence) -> None:
    assert evidence(names(BEFORE), fill) == expected


def test_the_name_that_is_being_written_is_judged_as_a_whole() -> None:
    assert evidence(names(f"{BEFORE}Us"), "ageInfo(folder)")["imported"] == 1
    assert evidence(names(f"{BEFORE}Usag"), "e(folder)")["unknown"] == ("Usage",)
    assert evidence(names(f"{BEFORE}json.dum"), "ps(1)")["package"] == 1


def test_an_argument_of_a_call_in_several_rows_is_no_declaration() -> None:
    before = f"{BEFORE}print(\n            1,\n            "
    assert evidence(names(before), "sep=folder)") == NameEvidence(declared=1)


def test_the_names_of_snippets_count_as_those_of_the_project() -> None:
    known = names(BEFORE, "", others=(Snippet("protocol.py", "class Usage:\n    pass\n"),))
    assert evidence(known, "Usage(folder)") == NameEvidence(declared=1, project=1)


def test_nothing_is_said_of_a_language_whose_names_are_not_known() -> None:
    for path in ("a.css", "nothing"):
        request = InfillRequest("", (Region(0, 0),), path=path)
        assert known_names(request, Region(0, 0), Sources(), PackageIndex(Path("nowhere")), path) is None


def test_broken_text_is_judged_as_far_as_it_goes() -> None:
    assert evidence(names(BEFORE), "print(((folder, Nobody")["unknown"] == ("Nobody",)
    assert names(BEFORE).uses(")]} ::= ''' Nobody") is not None


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
        ("const text = readFileSync(folder);", NameEvidence(declared=1, imported=1)),
        ("const text = readFile(folder);", NameEvidence(declared=1, nowhere=1, unknown=("readFile",))),
        ("this.rows.map((row) => row.trim());", NameEvidence(declared=1, builtin=1)),
        ("for (const [a, b] of Object.entries(folder)) { a(b); }", NameEvidence(declared=1, builtin=2)),
        ("return new Map<string, Missing>();", NameEvidence(builtin=1, nowhere=1, unknown=("Missing",))),
        ("shop.openTill(); shop.shut();", NameEvidence(imported=1, project=1, nowhere=1, unknown=("shut",))),
        (".filter(Boolean)", NameEvidence(builtin=2)),
        ("close(other: string): void {\n    other.trim();", NameEvidence()),
        ("const home = process.env.HOUSE;", NameEvidence(builtin=2)),
    ],
)
def test_names_of_scripts_are_known(fill: str, expected: NameEvidence) -> None:
    assert evidence(names(SCRIPT, "\n  }\n}\n", "main.ts"), fill) == expected


@pytest.mark.parametrize(
    "before", ["x = 1  # see ", '"""A text of', "'''A \"text\" of", 'x = "half a ', "x = 'it\\'s "]
)
def test_nothing_is_used_in_a_string_or_a_comment(before: str) -> None:
    assert evidence(names(BEFORE + before), "Some words") == NameEvidence()
    assert evidence(names(f"{BEFORE}x = 'a' + \"b\"  # c\n        "), "Some(words)")["nowhere"] == 2


def test_texts_of_many_rows_count_in_long_files() -> None:
    prose = "Some words\n\n" * 2_000
    code = "".join(f"def make{number}():\n    return spare{number}\n\n" for number in range(1_000))
    text = f'{code}x = """{prose}'
    assert evidence(names(text), "Some(words)") == NameEvidence()
    row = f'{text}"""\n{code}'
    assert evidence(names(row), "make7(spare999)") == NameEvidence(declared=2)
    assert evidence(names(row), "Some(words)") == NameEvidence(nowhere=2, unknown=("Some", "words"))
    assert evidence(names(f'{text}""" + '), "Some")["nowhere"] == 1
    assert evidence(names(f"{row}y = 'a "), "Some") == NameEvidence()


def test_uses_tell_where_they_end_so_that_beginnings_of_a_fill_can_be_judged() -> None:
    assert names("é = 1\n", "").uses("print(é, Nobody, print)") == (
        NameUse("print", "builtin", 5),
        NameUse("é", "declared", 8),
        NameUse("Nobody", "nowhere", 16),
    )


@pytest.mark.parametrize(
    ("path", "before", "fill", "unknown"),
    [
        ("a.go", 'package a\n\nimport "fmt"\n\nfunc run(n int) error {\n\t', "fmt.Println(len(Missing), n, Till{})",
         "Missing"),
        ("a.rs", "use std::fs;\n\nfn run(n: usize) {\n    ", "let v: Vec<Missing> = vec![fs::read(n), Till];",
         "Missing"),
    ],
)  # fmt: skip
def test_of_further_languages_plain_names_are_known(path: str, before: str, fill: str, unknown: str) -> None:
    found = evidence(names(before, "\n}\n", path), fill)
    assert found["unknown"] == (unknown,)
    assert found["project"] == 1


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
