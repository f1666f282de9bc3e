import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.files.opening import find_root, read_within
from lacuna_model.prior.index import location, longest_match
from lacuna_model.snippets import index
from lacuna_model.snippets.format import PieceCounter
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.workspace.project import MAX_PROJECTS, Project, Workspaces

PATIENCE = 30.0
PIECES = PieceCounter()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("lacuna_model.snippets.index.LOOK_S", 0.2)
    return tmp_path / "cache"


@pytest.fixture
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / getattr(request, "param", "project")
    folder.mkdir(parents=True)
    (folder / "shapes.py").write_text("def area(radius):\n    return radius * radius\n")
    return folder


@pytest.fixture
def project(root: Path, tokenizer: Tokenizer) -> Iterator[Project]:
    project = Project(root, tokenizer)
    yield project
    project.close()


@pytest.fixture
def follows(tokenizer: Tokenizer) -> Callable[[Project, str, str], str]:
    """Returns the text that follows a given text in a project, or "" if the project does not hold the given text."""

    def found(project: Project, text: str, path: str = "") -> str:
        context, found = tokenizer.encode(text), []
        match = longest_match(project.segments(path), context)
        if match is None or match.length < len(context):
            return ""
        while match is not None and len(found) < 4:
            found.append(int(match.tokens()[0]))
            match = match.follow(found[-1])
        return tokenizer.decode(found)

    return found


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition that a background thread makes true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.02)


def test_files_are_read_and_their_index_is_kept_on_disk(
    project: Project, root: Path, tokenizer: Tokenizer, cache: Path, follows: Callable[..., str]
) -> None:
    project.read(PATIENCE)
    assert project.is_read
    assert follows(project, "def area").startswith("(")
    (kept,) = (cache / "workspaces").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    again = Project(root, tokenizer)
    again.read(0.0)  # no time to read a file: the index on disk has the text
    assert follows(again, "def area").startswith("(")
    kept.write_bytes(b"damaged")
    third = Project(root, tokenizer)
    third.read(PATIENCE)
    assert follows(third, "def area").startswith("(")


def test_the_next_run_encodes_only_what_has_changed_and_forgets_what_is_gone(
    project: Project, root: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone.py", "changed.py"):
        (root / name).write_text("def other(radius):\n    return radius + 1\n")
    project.read(PATIENCE)
    encoded = list[list[str]]()
    encode = tokenizer.encode_batch
    monkeypatch.setattr(tokenizer, "encode_batch", lambda texts: encoded.append(texts) or encode(texts))
    monkeypatch.setattr("lacuna_model.workspace.project.BATCH", 4)  # so that each is a part of its own
    (root / "gone.py").unlink()
    (root / "changed.py").write_text("changed = True\n")
    (root / "sub").mkdir()
    (root / "sub" / "new.py").write_text("new = 1\n")
    again = Project(root, tokenizer)
    again.read(PATIENCE)
    assert sorted(encoded) == [["changed = True\n"], ["new = 1\n"]]
    assert known(again) == {"shapes.py", "changed.py", "sub/new.py"}


def test_what_has_changed_since_the_last_run_is_there_before_the_rest_is_read(
    project: Project, root: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (root / f"{name}.py").write_text(f"{name} = 1\n")
    project.read(PATIENCE)
    (root / "c.py").write_text("changed = True\n")
    monkeypatch.setattr(index, "BATCH", 1)
    again, seen = Project(root, tokenizer), list[str]()
    put = again.snippets.index.sources.put
    monkeypatch.setattr(
        type(again.snippets.index.sources),
        "put",
        lambda _, name, text: seen.append(f"{name} {'c.py' in known(again)}") or put(name, text),
    )
    again.read(PATIENCE)
    assert seen == ["c.py False", "a.py True", "b.py True", "shapes.py True"]


def test_what_could_not_be_taken_in_is_read_again_and_never_kept_as_known(
    project: Project, root: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "other.py").write_text("other = 1\n")
    monkeypatch.setattr(index, "BATCH", 1)
    encode, failures = tokenizer.encode_batch, [MemoryError()]

    def fails_once(texts: list[str]) -> list[list[int]]:
        if texts and failures:
            raise failures.pop()
        return encode(texts)

    monkeypatch.setattr(tokenizer, "encode_batch", fails_once)
    project.follow()
    until(lambda: known(project) == {"other.py", "shapes.py"})
    project.close()
    again = Project(root, tokenizer)
    again.read(0.0)
    assert known(again) == {"other.py", "shapes.py"}


def test_a_document_is_not_matched_with_itself(project: Project, root: Path, follows: Callable[..., str]) -> None:
    project.read(PATIENCE)
    assert follows(project, "def area", str(root / "shapes.py")) == ""
    assert follows(project, "def area", str(root / "other.py")) != ""


def test_secrets_and_files_outside_are_never_indexed(project: Project, root: Path, follows: Callable[..., str]) -> None:
    (root / ".env").write_text("name = value value")
    (root / "leak.py").write_text("name = value\n# -----BEGIN RSA PRIVATE KEY-----\n")
    (root.parent / "outside.py").write_text("name = value value")
    (root / "linked.py").symlink_to(root.parent / "outside.py")
    project.read(PATIENCE)
    assert follows(project, "def area").startswith("(")
    assert follows(project, "name") == ""


def test_what_is_left_out_is_not_opened_when_it_changes(
    project: Project, root: Path, monkeypatch: pytest.MonkeyPatch, follows: Callable[..., str]
) -> None:
    opened = list[str]()

    def read(root: Path, file: Path, limit: int) -> bytes | None:
        opened.append(file.name)
        return read_within(root, file, limit)

    (root / ".gitignore").write_text("app.log\n")
    project.follow()
    until_followed(root, project)
    monkeypatch.setattr("lacuna_model.files.scanning.read_within", read)
    for name in (".env", "app.log", "new.py"):
        (root / name).write_text("value = total + 1\n")
    until(lambda: "new.py" in known(project))
    assert set(opened) == {"new.py"}
    assert follows(project, "value =").startswith(" total")


@pytest.mark.parametrize("root", ["project", ".venv/src/project"], indirect=True)
def test_changes_on_disk_are_followed(project: Project, root: Path, follows: Callable[..., str]) -> None:
    project.follow()
    until(lambda: project.is_read)
    file = root / "new.py"
    until_written(file, "value = total + 1\n", lambda: follows(project, "value =").startswith(" total"))
    file.unlink()
    until(lambda: follows(project, "value =") == "")


def test_a_workspace_may_be_named_by_a_way_that_goes_up(
    root: Path, tokenizer: Tokenizer, follows: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "inner").mkdir()
    monkeypatch.chdir(root / "inner")
    workspaces = Workspaces(tokenizer)
    project = workspaces.read("..", PATIENCE)
    assert workspaces.read(str(root), PATIENCE) is project
    assert follows(project, "def area", "../other.py").startswith("(")
    assert follows(project, "def area", "../shapes.py") == ""
    text = "print(area("
    request = InfillRequest(text, (Region(len(text), len(text)),), path="../main.py", workspace="..")
    assert [snippet.path for snippet in project.choose(request, tokenizer, 200)] == ["shapes.py"]
    workspaces.close()


def test_only_the_last_few_projects_are_kept(tmp_path: Path, tokenizer: Tokenizer) -> None:
    workspaces = Workspaces(tokenizer)
    folders = [tmp_path / str(number) for number in range(MAX_PROJECTS + 1)]
    for folder in folders:
        folder.mkdir()
    projects = [workspaces.read(str(folder), PATIENCE) for folder in folders]
    assert workspaces.read(str(folders[-1]), PATIENCE) is projects[-1]
    assert workspaces.read(str(folders[0]), PATIENCE) is not projects[0]
    workspaces.close()


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "package.json", "lacuna.toml"])
def test_the_workspace_of_a_file_is_found_by_its_mark(tmp_path: Path, mark: str) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file = inner / "code.py"
    assert find_root(file) is None
    if mark == ".git":
        (tmp_path / ".git").mkdir()
        (inner / "pyproject.toml").touch()  # a repository counts more than a package in it
    else:
        (tmp_path / mark).touch()
    assert find_root(file) == tmp_path.resolve()


def until_written(path: Path, text: str, condition: Callable[[], bool]) -> None:
    """Writes a file again and again until the condition holds: the watcher may not have started yet."""

    def written() -> bool:
        path.write_text(text)
        time.sleep(0.2)
        return condition()

    until(written)


def known(project: Project) -> set[str]:
    """The names of all documents in the index that are not hidden."""
    return {
        name
        for segment in project.segments("")
        for number, name in enumerate(segment.documents.names)
        if segment.counts is None or segment.counts[number]
    }


def test_new_links_and_pipes_are_not_read_and_block_nothing(project: Project, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("def hidden(value):\n    return value * 41\n")
    project.follow()
    until(lambda: "shapes.py" in known(project))
    os.mkfifo(root / "pipe.py")
    (root / "zero.py").symlink_to("/dev/zero")
    (root / "link.py").symlink_to(outside)
    os.mkfifo(root / ".gitignore")
    until_written(root / "later.py", "def later(value):\n    return value + 17\n", lambda: "later.py" in known(project))
    assert known(project) == {"later.py", "shapes.py"}


def test_nobody_waits_for_a_project_that_cannot_be_read_and_it_is_read_once_it_can(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    code = "total = 17"

    def fails(*arguments: object, **options: object) -> object:
        raise RuntimeError(code)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lacuna_model.snippets.index.scan", fails)
        project.follow()
        until(lambda: project.is_read)
        until(lambda: len(caplog.records) >= 2)
    said = "".join(record.getMessage() for record in caplog.records)
    assert "RuntimeError" in said
    assert code not in said
    until(lambda: "shapes.py" in known(project) and quotes(project))


def quotes(project: Project) -> set[str]:
    """The files that the model would read with a document that uses what ``shapes.py`` and ``inner/solids.py`` say."""
    text = "from shapes import area\nfrom inner.solids import volume\n\n\nprint(area(), volume())\n"
    at = len(text) - 2
    request = InfillRequest(text, (Region(at, at),), path=str(project.root / "main.py"), workspace=str(project.root))
    return {snippet.path for snippet in project.choose(request, tokenizer=PIECES, budget=400)}


def moved(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def moved_with_its_parent(root: Path) -> None:
    root.parent.rename(root.parent.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("act", "at_once"),
    [(moved, False), (shutil.rmtree, True), (shutil.rmtree, False), (moved_with_its_parent, False)],
    ids=["moved", "removed, made anew at once", "removed", "moved with its parent"],
)
def test_a_folder_that_is_gone_is_not_quoted_and_followed_again_when_it_is_made_anew(
    tmp_path: Path, tokenizer: Tokenizer, act: Callable[[Path], None], at_once: bool
) -> None:
    root = tmp_path / "above" / "project"
    root.mkdir(parents=True)
    (root / "shapes.py").write_text("def area(radius):\n    return radius * radius\n")
    project = Project(root, tokenizer)
    project.follow()
    until(lambda: "shapes.py" in known(project) and "shapes.py" in quotes(project))
    until_followed(root, project)
    act(root)
    if not at_once:
        until(lambda: not known(project) and not quotes(project))
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "solids.py").write_text("def volume(edge):\n    return edge * edge * edge\n")
    until(lambda: known(project) == quotes(project) == {"inner/solids.py"})
    until_followed(root, project)
    project.close()


def until_followed(root: Path, project: Project) -> None:
    """Waits until a change is noticed, and takes it back."""
    file = root / "followed.py"
    until_written(file, "def followed(value):\n    return value + 17\n", lambda: "followed.py" in known(project))
    file.unlink()
    until(lambda: "followed.py" not in known(project))


def test_files_go_and_come_with_their_folders(project: Project, root: Path, tmp_path: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "solids.py").write_text("def volume(edge):\n    return edge * edge * edge\n")
    project.follow()
    until_followed(root, project)
    until(lambda: "inner/solids.py" in known(project) & quotes(project))
    inner.rename(tmp_path / "elsewhere")
    until(lambda: "inner/solids.py" not in known(project) | quotes(project))
    assert "shapes.py" in known(project) & quotes(project)
    (tmp_path / "elsewhere").rename(inner)
    until(lambda: "inner/solids.py" in known(project) & quotes(project))


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def in_the_repository(folder: Path) -> tuple[Path, Path]:
    git(folder, "init", ".")
    return folder, folder / ".git/info/exclude"


def in_the_workspace(folder: Path) -> tuple[Path, Path]:
    return folder, folder / ".lacunaignore"


def ignored_above_the_workspace(folder: Path) -> tuple[Path, Path]:
    git(folder, "init", ".")
    return folder / "part", folder / ".gitignore"


def in_a_folder_below(folder: Path) -> tuple[Path, Path]:
    return folder, folder / "inner/.lacunaignore"


def of_a_work_tree(folder: Path) -> tuple[Path, Path]:
    git(folder, "init", "first")
    git(folder / "first", "commit", "--allow-empty", "-m", "first")
    git(folder / "first", "worktree", "add", str(folder / "second"))
    return folder / "second", folder / "first/.git/info/exclude"


def of_a_submodule(folder: Path) -> tuple[Path, Path]:
    for name in ("first", "second"):
        git(folder, "init", name)
        git(folder / name, "commit", "--allow-empty", "-m", "first")
    git(folder / "first", "submodule", "add", str(folder / "second"), "sub")
    return folder / "first/sub", folder / "first/.git/modules/sub/info/exclude"


@pytest.mark.parametrize(
    "place",
    [
        in_the_workspace,
        in_a_folder_below,
        in_the_repository,
        ignored_above_the_workspace,
        of_a_work_tree,
        of_a_submodule,
    ],
    ids=lambda place: place.__name__,
)
def test_a_file_that_becomes_excluded_is_dropped_and_comes_back(
    tmp_path: Path,
    tokenizer: Tokenizer,
    place: Callable[[Path], tuple[Path, Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "RESCAN_TIMES", 1_000_000)  # as if a scan took long: rules do not wait for the next
    folder = tmp_path / "repository"
    folder.mkdir()
    root, rules = place(folder)
    (root / "inner").mkdir(parents=True)
    (root / "shapes.py").write_text("def area(radius):\n    return radius * radius\n")
    (root / "inner/solids.py").write_text("def volume(edge):\n    return edge * edge * edge\n")
    project = Project(root, tokenizer)
    project.follow()
    both = {"shapes.py", "inner/solids.py"}
    until(lambda: known(project) == quotes(project) == both)
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("solids.py\n.lacunaignore\n")
    until(lambda: known(project) == quotes(project) == {"shapes.py"})
    if place is in_the_workspace:  # nor is it kept on disk
        kept = location(root, tokenizer.fingerprint)
        until(lambda: kept.exists() and b"solids.py" not in kept.read_bytes())
    if place not in (in_the_workspace, in_a_folder_below):  # git says so, too
        subprocess.run(["git", "check-ignore", "inner/solids.py"], cwd=root, capture_output=True, check=True)
    rules.write_text("")
    until(lambda: known(project) == quotes(project) == both)
    project.close()
