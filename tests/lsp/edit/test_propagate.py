import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from tests.lsp.editor import Editor
from tests.lsp.service import Daemon

from lacuna_lsp.edit.propagate import ChangeRule, infer
from lacuna_model.core.errors import RequestError
from lacuna_model.syntax import language_for
from lacuna_server.refactor.places.source import Source


def rule(language: str, old: str, new: str, at: int = 0) -> ChangeRule:
    known = language_for(name=language)
    assert known is not None
    return infer(Source("old", old, known), Source("new", new, known), at)


@pytest.mark.parametrize(
    ("language", "old", "new", "pattern", "template"),
    [
        ("python", "import web\nweb.get(url)\n", "import web\nweb.get(url, timeout=10)\n", "web.get($$$A)",
         "web.get($$$A, timeout=10)"),
        ("python", "print('a')\n", "log.info('a')\n", "print($$$A)", "log.info($$$A)"),
        ("python", "print('a')\n", "log.info('a happened')\n", "print($A)", "log.info(<<fill:line>>)"),
        ("python", "if x == None: pass\n", "if x is None: pass\n", "$A == None", "$A is None"),
        ("python", "f(x, timeout=3)\n", "f(x, timeout=5)\n", "f($$$A, timeout=3)", "f($$$A, timeout=5)"),
        ("python", "log(user)\n", "log('user', user)\n", "log($A)", "log(<<fill:line>>, $A)"),
        ("python", "d.has_key(k)\n", "k in d\n", "$A.has_key($B)", "$B in $A"),
        ("python", "x = open(p).read()\n", "x = Path(p).read_text()\n", "open($$$A).read()", "Path($$$A).read_text()"),
        ("typescript", "foo.bar(a);\n", "await foo.bar(a);\n", "$A.bar($$$B)", "await $A.bar($$$B)"),
        ("rust", "fn f() { x.unwrap(); }\n", 'fn f() { x.expect("x"); }\n', "$A.unwrap()", '$A.expect("x")'),
        ("java", "class A { void f() { System.out.println(a); } }\n", "class A { void f() { LOG.info(a); } }\n",
         "System.out.println($$$A)", "LOG.info($$$A)"),
    ],
)  # fmt: skip
def test_one_change_gives_a_rule_for_similar_places(
    language: str, old: str, new: str, pattern: str, template: str
) -> None:
    found = rule(language, old, new)
    assert (found.pattern, found.template) == (pattern, template)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x = 1\n", "x = 1\n", "nothing has been changed"),
        ("x = 1\nz = 1\n", "x = 1\ny = 2\nz = 1\n", "no rule for other places"),
    ],
)
def test_a_change_that_gives_no_rule_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        rule("python", old, new)


def test_one_of_very_many_changes_gives_the_rule() -> None:
    """Each compared with all lines behind it, they would take minutes."""
    old = "".join(f"value_{number} = f(x, {number})\n" for number in range(30_000))
    new = re.sub(r"(_\d+0 = )f\(", r"\1g(", old)
    assert rule("python", old, new, at=len(new) // 2).pattern == "f($$$A)"


def test_the_nearest_of_several_changes_gives_the_rule() -> None:
    old, new = "f(1)\n\n\n\ng(2)\n", "f(1, a=7)\n\n\n\ng(2, b=8)\n"
    assert rule("python", old, new, at=0).template == "f($$$A, a=7)"
    assert rule("python", old, new, at=len(new) - 2).template == "g($$$A, b=8)"


LEDGER = (Path(__file__).parents[2] / "data/syntax/ledger.py").read_text()
TOKENS = [match.span() for match in re.finditer(r"\w+|[^\w\s]|\s+", LEDGER)]


@settings(max_examples=40)
@given(
    token=st.sampled_from(TOKENS),
    text=st.sampled_from(["", "x", "foo(1)", "'s'", "==", "(", ", 1", "await "]),
    insert=st.booleans(),
)
def test_any_edit_gives_a_rule_or_is_refused(token: tuple[int, int], text: str, insert: bool) -> None:
    start, end = token
    changed = LEDGER[:start] + text + LEDGER[start if insert else end :]
    try:
        found = rule("python", LEDGER, changed, start)
    except RequestError:
        return
    assert found.pattern != found.template


async def test_a_change_is_propagated_to_all_files_and_only_its_differing_part_is_filled(
    editor: Editor, daemon: Daemon, tmp_path: Path
) -> None:
    daemon.plan(fills=[["'b is done'", "'c is done'"]])
    (tmp_path / "other.py").write_text("def f():\n    print('c')\n    print('d', 1)\n")
    (tmp_path / "here.py").write_text("print('a')\nprint('b')\n")
    await editor.initialize(folder=tmp_path)
    editor.open("print('a')¦\nprint('b')\n", uri=(tmp_path / "here.py").as_uri())
    editor.delete(len("print('a')"))
    editor.type("log.info('a is done')")
    place = {"line": 0, "character": 3}
    daemon.plan(fills=["'filled'"])
    answer = await editor.command("lacuna.propagate", {"textDocument": {"uri": editor.uri}, "position": place})
    assert (answer["status"], answer["edits"]) == ("applied", 2)
    shown = [seen[0].title for seen in editor.client.progress_reports.values() if seen]
    assert "Make the change everywhere" in shown
    (applied,) = editor.applied
    edit = applied.edit
    assert edit.document_changes is not None
    texts = {
        change.text_document.uri: [one.new_text for one in change.edits]  # type: ignore[union-attr]
        for change in edit.document_changes
    }
    assert texts == {
        (tmp_path / "here.py").as_uri(): ["log.info('filled')"],
        (tmp_path / "other.py").as_uri(): ["log.info('filled')"],
    }
    versions = {change.text_document.version for change in edit.document_changes}  # type: ignore[union-attr]
    assert versions == {editor.version, None}
    assert edit.change_annotations is not None
    assert all(annotation.needs_confirmation for annotation in edit.change_annotations.values())
    assert applied.metadata is not None
    assert applied.metadata.is_refactoring
    # The server does not write the files. The editor applies the edits.
    assert (tmp_path / "other.py").read_text() == "def f():\n    print('c')\n    print('d', 1)\n"


async def test_places_that_already_have_the_change_are_left_alone(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize()
    editor.open("import web\nweb.get(a¦)\nweb.get(b, timeout=9)\nweb.get(c, timeout=9)\nweb.get()\n")
    editor.type(", timeout=9")
    arguments = {"textDocument": {"uri": editor.uri}, "position": {"line": 1, "character": 8}, "scope": "file"}
    await editor.command("lacuna.propagate", arguments)
    assert editor.edited().splitlines()[1:] == [
        "web.get(a, timeout=9)", "web.get(b, timeout=9)", "web.get(c, timeout=9)", "web.get(timeout=9)"
    ]  # fmt: skip
    assert daemon.requests == []


async def test_saving_discards_the_recorded_changes(editor: Editor, daemon: Daemon) -> None:
    await editor.initialize()
    editor.open("f(a¦)\nf(b)\n")
    editor.type(", 1")
    identifier = types.TextDocumentIdentifier(editor.uri)
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(identifier))
    with pytest.raises(Exception, match="nothing has been changed in this file since it was saved"):
        await editor.command(
            "lacuna.propagate", {"textDocument": {"uri": editor.uri}, "position": {"line": 0, "character": 0}}
        )


async def test_comments_move_with_their_code_and_a_place_that_would_lose_one_is_reported(
    editor: Editor, daemon: Daemon
) -> None:
    await editor.initialize()
    editor.open("x = a.has(b)¦\ny = c.has(  # why\n    d)\nz = e.has(f  # f\n)\n")
    editor.delete(len("a.has(b)"))
    editor.type("b in a")
    arguments = {"textDocument": {"uri": editor.uri}, "position": {"line": 0, "character": 6}, "scope": "file"}
    answer = await editor.command("lacuna.propagate", arguments)
    assert editor.edited() == "x = b in a\ny = c.has(  # why\n    d)\nz = f in e  # f\n"
    assert "# why" in answer["leftOut"][0]


async def test_what_follows_is_found_in_strings_comments_and_other_files(editor: Editor, tmp_path: Path) -> None:
    rest = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(12))
    (tmp_path / "other.py").write_text(f"{rest}import brotli_codec\nbody = brotli_codec.compress(text)\n")
    (tmp_path / "apart.py").write_text(rest)
    await editor.initialize(folder=tmp_path, ready=False)
    editor.open(
        f"import brotli_codec¦\n{rest}raise ImportError('brotli_codec is missing')\n",
        uri=(tmp_path / "here.py").as_uri(),
    )
    editor.delete(len("brotli_codec"))
    editor.type("brotlicffi")
    place = {"line": 0, "character": 3}
    answer = await editor.command("lacuna.propagate", {"textDocument": {"uri": editor.uri}, "position": place})
    assert (answer["status"], answer["edits"]) == ("applied", 3)
    changed = editor.applied[0].edit.document_changes
    assert changed is not None
    assert {change.text_document.uri.rpartition("/")[2] for change in changed} == {"here.py", "other.py"}  # type: ignore[union-attr]
