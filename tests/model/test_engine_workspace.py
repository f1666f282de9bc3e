from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lacuna_model.engine import Engine
from lacuna_model.loader import LoadedModel
from lacuna_model.params import DecodeOptions, InfillRequest, Region, Snippet
from lacuna_model.prior.spans import Spoken
from lacuna_model.two_sided import TwoSidedModel
from lacuna_model.window import WindowOptions

KNOWN = (
    "class Account:\n    def add(self, value):\n"
    "        self.total = self.total + value\n        print(self.name, self.total)\n"
)
HEAD, SPAN, TAIL = (
    "class Other:\n    def add(self, value):\n        self",
    ".total = self.total + value",
    "\n        print(self.name, self.total)\n",
)
PATIENCE = 30.0


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "account.py").write_text(KNOWN)
    return folder


@pytest.fixture
def engine(model: LoadedModel) -> Iterator[Engine]:
    engine = Engine(model, window=WindowOptions(snippets=0))
    yield engine
    engine.workspaces.close()


def request(text: str, root: Path | None, *, prior: bool = True) -> InfillRequest:
    """A request for what is missing behind ``HEAD``, of a model that draws its words out of a hat."""
    at = len((text + HEAD).encode())
    return InfillRequest(
        text + HEAD + TAIL,
        (Region(at, at, max_tokens=40),),
        path=str((root or Path("/nowhere")) / "other.py"),
        workspace=str(root or ""),
        options=DecodeOptions(syntax=False, prior=prior),
    )


def test_what_the_project_has_is_filled_in_and_at_once(
    engine: Engine, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TwoSidedModel, "says", lambda _self, _canvas, runs: [Spoken(0.0, 0.0)] * len(runs))
    engine.workspaces.read(str(root), PATIENCE)
    result = engine.fill(request("", root))
    assert result.fills == (SPAN,)
    assert result.stats.steps * 4 < result.stats.tokens


def test_the_open_file_alone_is_a_prior(engine: Engine) -> None:
    assert engine.fill(request(KNOWN, None)).fills == (SPAN,)


def test_text_between_gaps_is_no_continuous_text(engine: Engine) -> None:
    """The file has the span, but with a gap in it: what stands on both sides of that one is not taken for text."""
    text = KNOWN.replace("total + value", "<<>>")
    known = request(text, None)
    at = known.text.index("<<>>")
    both = msgspec.structs.replace(known, regions=(Region(at, at + 4, max_tokens=2), *known.regions))
    assert not engine.fill(both).fills[1].startswith(".total = self.\n")


def test_it_can_be_switched_off(engine: Engine, root: Path) -> None:
    engine.workspaces.read(str(root), PATIENCE)
    assert engine.fill(request("", root, prior=False)).fills != (SPAN,)
    assert engine.fill(request("", None)).fills != (SPAN,)


def test_the_file_on_disk_does_not_tell_what_is_missing_in_it(engine: Engine, root: Path) -> None:
    (root / "account.py").write_text("pass\n")
    (root / "other.py").write_text(HEAD + SPAN + TAIL)
    engine.workspaces.read(str(root), PATIENCE)
    assert engine.fill(request("", root)).fills != (SPAN,)


@pytest.mark.parametrize("guidance", [0.0, 0.6])
def test_a_kept_context_with_snippets_changes_no_fill(model: LoadedModel, root: Path, guidance: float) -> None:
    snippets = (Snippet("account.py", KNOWN),)
    options = DecodeOptions(syntax=False, guidance=guidance)
    texts = [text + HEAD.removesuffix("self") for text in ("", "x = 1\n", "x = 1\ny = 2\n", "x = 1\n")]
    asked = [
        msgspec.structs.replace(
            request("", root),
            text=text + TAIL,
            regions=(Region(len(text), len(text), max_tokens=40),),
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


def test_snippets_are_read_unless_the_request_brings_its_own(model: LoadedModel, root: Path) -> None:
    engine = Engine(model)
    engine.workspaces.read(str(root), PATIENCE)
    text = "from account import Account\n\n\nAccount()\n"
    asked = InfillRequest(text, (Region(len(text), len(text), max_tokens=2),), path=str(root / "main.py"))
    alone = engine.fill(asked).stats.context_tokens
    chosen = engine.fill(msgspec.structs.replace(asked, workspace=str(root))).stats.context_tokens
    own = msgspec.structs.replace(asked, workspace=str(root), snippets=(Snippet("a.py", "x"),))
    assert alone < engine.fill(own).stats.context_tokens < chosen
