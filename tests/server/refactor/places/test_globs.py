from pathlib import Path

import pytest

from lacuna_server.refactor.places.gather import Glob, gather


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with links to places inside and outside of it."""
    for name in ("project/a.py", "project/lib/b.py", "project/app/[id]/c.py", "project/.d/e.py", "other/secret.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old(1)\n")
    project = tmp_path / "project"
    (project / "out").symlink_to(tmp_path / "other")
    (project / "file.py").symlink_to(tmp_path / "other" / "secret.py")
    (project / "lib" / "here.py").symlink_to(project / "a.py")
    (project / "lib" / "up").symlink_to(project)
    (project / "lib" / "loop").symlink_to("loop")
    monkeypatch.chdir(project)
    return project


def names(pattern: str) -> list[str]:
    return sorted({path.as_posix() for path in Glob(pattern).files()})


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "app/[id]/c.py", "lib/b.py", "lib/here.py"]),
        ("**/**/b.py", ["lib/b.py"]),
        ("lib/*", ["lib/b.py", "lib/here.py"]),
        ("lib/**", ["lib/b.py", "lib/here.py"]),
        ("*/b.py", ["lib/b.py"]),
        ("app/[id]/*.py", ["app/[id]/c.py"]),
        ("app/*/[a-c].py", ["app/[id]/c.py"]),
        (".d/*.py", [".d/e.py"]),
        ("out/*.py", ["out/secret.py"]),
        ("../other/*.py", ["../other/secret.py"]),
        ("nowhere/*.py", []),
        ("lib/u*/a.py", ["lib/up/a.py"]),
    ],
)
def test_a_glob_names_files_inside_its_folder(project: Path, pattern: str, found: list[str]) -> None:
    assert names(pattern) == found


def test_an_absolute_glob_stays_in_the_folder_that_it_begins_in(project: Path) -> None:
    assert names(f"{project.as_posix()}/**/*.py") == sorted(
        f"{project.as_posix()}/{name}" for name in ("a.py", "app/[id]/c.py", "lib/b.py", "lib/here.py")
    )


def test_links_out_of_the_folder_are_reported(project: Path) -> None:
    sources, left_out = gather(["**/*.py"])
    assert sorted(source.path for source in sources) == ["a.py", "app/[id]/c.py", "lib/b.py"]
    assert sorted(left_out) == [
        "file.py is a link out of the folder; it is not followed",
        "out is a link out of the folder; it is not followed",
    ]


def test_a_glob_may_begin_beside_or_above_the_current_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = project / ".work" / "tree"
    (hidden / ".cache").mkdir(parents=True)
    for name in ("a.py", ".cache/b.py"):
        (hidden / name).write_text("old(1)\n")
    monkeypatch.chdir(project / "app")
    for pattern in ("../lib/**/b.py", f"{project}/lib/**/b.py", f"{hidden}/**/*.py", "../.work/tree/*.py"):
        assert len(gather([pattern])[0]) == 1, pattern
    monkeypatch.chdir(hidden)
    assert [len(gather([pattern])[0]) for pattern in ("*.py", f"{hidden}/*.py", ".cache/*.py")] == [1, 1, 0]


def test_a_file_that_a_glob_reaches_in_many_ways_occurs_once(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(8):
        folder /= "a"
    folder.mkdir(parents=True)
    (folder / "x.py").touch()
    assert list(Glob(f"{tmp_path}/**/a/**/a/**/a/**/*.py").files()) == [folder / "x.py"]
