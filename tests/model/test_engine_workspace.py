from pathlib import Path

import msgspec
import pytest

from lacuna_model.core.context import WindowOptions
from lacuna_model.core.params import ChooseSnippets, DecodeOptions, InfillRequest, Region, Snippet
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim

KNOWN = (
    "class Account:\n    def add(self, value):\n"
    "        self.total = self.total + value\n        print(self.name, self.total)\n"
)
HEAD, TAIL = "class Other:\n    def add(self, value):\n        ", "\n        print(self.name, self.total)\n"
PATIENCE = 30.0


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "account.py").write_text(KNOWN)
    return folder


def request(root: Path, *, prior: bool = True) -> InfillRequest:
    """A request to fill the gap between ``HEAD`` and ``TAIL``."""
    at = len(HEAD.encode())
    return InfillRequest(
        HEAD + TAIL,
        (Region(at, at, max_tokens=40),),
        path=str(root / "other.py"),
        workspace=str(root),
        options=DecodeOptions(syntax=False, prior=prior),
    )


def test_drafts_from_the_project_save_passes_and_change_no_fill(model: LoadedFim, root: Path) -> None:
    engine = Engine(model, window=WindowOptions(snippets=0))
    free = engine.fill(request(root, prior=False))
    # Now the project holds what the model writes, so it is drafted.
    (root / "account.py").write_text(HEAD + free.fills[0] + "\n")
    engine.workspaces.read(str(root), PATIENCE)
    drafted = engine.fill(request(root))
    assert drafted.fills == free.fills
    assert drafted.stats.nfe < free.stats.nfe
    assert engine.fill(request(root, prior=False)).stats.nfe == free.stats.nfe


def test_a_kept_context_with_snippets_changes_no_fill(model: LoadedFim, root: Path) -> None:
    snippets = (Snippet("account.py", KNOWN),)
    options = DecodeOptions(syntax=False)
    texts = [text + HEAD for text in ("", "x = 1\n", "x = 1\ny = 2\n", "x = 1\n")]
    asked = [
        msgspec.structs.replace(
            request(root),
            text=text + TAIL,
            regions=(Region(len(text), len(text), max_tokens=12),),
            snippets=snippets,
            options=options,
        )
        for text in texts
    ]
    kept, counts = Engine(model), []
    kept.workspaces.read(str(root), PATIENCE)
    for one in asked:
        fresh = Engine(model, workspaces=kept.workspaces)
        warm = kept.fill(one)
        assert warm.fills == fresh.fill(one).fills
        counts.append(warm.stats.cached_tokens)
    assert counts[0] == 0
    assert all(count > 0 for count in counts[1:])


def test_snippets_are_chosen_unless_the_request_brings_its_own(model: LoadedFim, root: Path) -> None:
    engine = Engine(model)
    engine.workspaces.read(str(root), PATIENCE)
    text = "from account import Account\n\n\nAccount()\n"
    asked = InfillRequest(text, (Region(len(text), len(text), max_tokens=2),), path=str(root / "main.py"))
    alone = engine.fill(asked).stats.context_tokens
    chosen = engine.fill(msgspec.structs.replace(asked, workspace=str(root))).stats.context_tokens
    own = msgspec.structs.replace(asked, workspace=str(root), snippets=(Snippet("a.py", "x"),))
    assert alone < engine.fill(own).stats.context_tokens < chosen


def test_only_the_snippets_are_returned_where_nothing_else_is_asked(model: LoadedFim, root: Path) -> None:
    """Also of a workspace that the engine has not read before."""
    engine = Engine(model)
    asked = request(root)
    asked = msgspec.structs.replace(
        asked, text="account = Account()\n", regions=(Region(19, 19),), task=ChooseSnippets(200)
    )
    try:
        result = engine.fill(asked)
        (only,) = result.snippets
        assert (result.status, result.fills) == ("ok", ("",))
        assert (only.path, only.reason) == ("account.py", "similar to the code around line 1: `account`")
        assert 0 < only.tokens <= 200
        unrelated = msgspec.structs.replace(asked, text="x\n", regions=(Region(0, 0),), path=str(root / "x.py"))
        assert engine.fill(unrelated).message == (
            f"the other source files in {root} (1) have no definition of a name used there and no similar code that "
            "fits in the budget"
        )
        secret = msgspec.structs.replace(asked, path=str(root / ".env"))
        assert engine.fill(secret).message == ".env may hold secrets, so nothing is read with it"
    finally:
        engine.workspaces.close()
