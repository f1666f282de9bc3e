import json
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from lacuna_lsp.commands import snippets_read
from lacuna_lsp.document import ClientDocument


async def test_the_most_relevant_snippet_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snippets = [{"path": f"{score}.py", "score": score} for score in (0.2, 0.9, 0.5)]
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps({'snippets': snippets})}'\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    document = ClientDocument((tmp_path / "code.py").as_uri(), "a = 1\n", 0, "python", "utf-16")
    report = await snippets_read(document, types.Position(0, 4), "")
    assert [snippet["path"] for snippet in report["snippets"]] == ["0.9.py", "0.5.py", "0.2.py"]
