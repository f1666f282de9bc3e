import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.gather import gather


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "a.py": "a\n",
        "lib/b.py": "b\n",
        "lib/c.js": "c\n",
        "build/d.py": "d\n",
        "node_modules/e.js": "e\n",
        "notes.txt": "f\n",
        "keys.py": f"token = '{'ghp_' + 'a1B2' * 9}'\n",
        ".gitignore": "build/\n",
        "credentials.json": "{}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.py").write_bytes(b"caf\xe9\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*places: str, languages: tuple[str, ...] = ()) -> list[str]:
    return sorted(source.path for source in gather(places, languages)[0])


def test_files_that_are_left_out_are_reported(project: Path) -> None:
    assert sorted(gather(["."])[1]) == [
        "keys.py is generated or holds a credential",
        "latin.py is not UTF-8 text: byte 0xe9 at offset 3",
    ]


def test_a_file_that_is_named_explicitly_is_included(project: Path) -> None:
    assert names("build/d.py", "keys.py") == ["build/d.py", "keys.py"]
    (forced,), _ = gather(["notes.txt"], forced="python")
    assert forced.language.name == "python"
    with pytest.raises(RequestError, match=r"notes.txt: no language is known"):
        gather(["notes.txt"])
    with pytest.raises(RequestError, match="not UTF-8"):
        gather(["latin.py"])
    with pytest.raises(RequestError, match="nowhere: no such file or folder"):
        gather(["nowhere"])
    with pytest.raises(RequestError, match="unknown language 'klingon'"):
        gather(["a.py"], forced="klingon")


def test_a_file_that_cannot_be_read_does_not_stop_the_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.open

    def refused(path: Path, *arguments: Any) -> Any:  # root may read any file
        if path.name == "b.py":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path, *arguments)

    monkeypatch.setattr(Path, "open", refused)
    sources, left_out = gather(["."], ["python"])
    assert [source.path for source in sources] == ["a.py"]
    assert "lib/b.py cannot be read: Permission denied" in left_out
    with pytest.raises(PermissionError):
        gather(["lib/b.py"])
