from pathlib import Path

import pytest

from lacuna_server.refactor.places.gather import gather


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with links to places inside and outside of it."""
    for name in (
        "project/a.py",
        "project/lib/b.py",
        "project/lib/.h.py",
        "project/app/[id]/c.py",
        "project/.d/e.py",
        "other/f.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old(1)\n")
    project = tmp_path / "project"
    (project / "out").symlink_to(tmp_path / "other")
    (project / "file.py").symlink_to(tmp_path / "other" / "f.py")
    (project / "lib" / "here.py").symlink_to(project / "a.py")
    (project / "lib" / "up").symlink_to(project)
    (project / "lib" / "loop").symlink_to("loop")
    monkeypatch.chdir(project)
    return project


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "app/[id]/c.py", "lib/b.py"]),
        ("{project}/**/*.py", ["{project}/a.py", "{project}/app/[id]/c.py", "{project}/lib/b.py"]),
        ("**/**/b.py", ["lib/b.py"]),
        ("lib/**", ["lib/b.py", "lib/here.py"]),
        ("*/b.py", ["lib/b.py"]),
        ("app/[id]/*.py", ["app/[id]/c.py"]),
        ("app/*/[a-c].py", ["app/[id]/c.py"]),
        (".d/*.py", []),
        ("out/*.py", ["out/f.py"]),
        ("../other/*.py", ["../other/f.py"]),
        ("nowhere/*.py", []),
        ("lib/u*/a.py", ["lib/up/a.py"]),
    ],
)
def test_a_glob_names_files_inside_its_folder(project: Path, pattern: str, found: list[str]) -> None:
    sources, _ = gather([pattern.format(project=project)])
    assert [source.path for source in sources] == [path.format(project=project) for path in found]


def test_links_out_of_the_folder_are_reported(project: Path) -> None:
    sources, left_out = gather(["*.py", "*/*.py"])
    assert sorted(source.path for source in sources) == ["a.py", "lib/b.py"]
    assert left_out == tuple(
        f"{name} is a link out of the folder; it is not followed" for name in ("file.py", "out/f.py")
    )


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
