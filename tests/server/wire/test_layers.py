from pathlib import Path

import pytest

from lacuna_model.hub import models
from lacuna_server.wire import layers
from lacuna_server.wire.config import ConfigError, ServerConfig, Settings
from lacuna_server.wire.layers import SettingsLayer, problems


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, in a folder that exists; no model is named by the environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(models.MODEL_VARIABLE)
    file = layers.user_file()
    file.parent.mkdir(parents=True)
    return file


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    return folder


@pytest.mark.parametrize(("name", "table"), [("lacuna.toml", ""), ("pyproject.toml", "[tool.lacuna]\n")])
def test_a_file_may_begin_with_a_byte_order_mark(project: Path, own: Path, name: str, table: str) -> None:
    (project / name).write_text(f"{table}max_tokens = 7\n", "utf-8-sig")
    found = layers.read(project)
    assert (problems(found), layers.settings(found).max_tokens) == ([], 7)


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5_000, "a" + ".a" * 5_000 + " = 1", "a = " + "{b = " * 5_000, "a = " + "9" * 5_000],
    ids=["list", "key", "table", "number"],
)
def test_a_file_that_cannot_be_read_is_a_problem_of_one_line(project: Path, own: Path, text: str) -> None:
    for name, least in (("pyproject.toml", 0), ("lacuna.toml", 1)):
        (project / name).write_text(f"[tool.lacuna]\n{text}\n")
        found = layers.read(project)
        assert least <= len(problems(found)) <= 1
        assert all("\n" not in line for line in problems(found))
        assert layers.settings(found) == Settings()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o602])
def test_a_token_in_a_file_that_others_can_read_is_a_problem(own: Path, mode: int) -> None:
    own.write_text('token = "secret"\n')
    own.chmod(mode)
    (said,) = problems(layers.read(None))
    assert f"chmod go-rwx {own}" in said
    own.chmod(0o600)
    assert not problems(layers.read(None))


def test_a_project_file_is_found_up_to_the_root_and_not_beyond(own: Path, project: Path) -> None:
    deep = project / "src" / "deep"
    (project.parent / "lacuna.toml").write_text("max_lines = 1\n")
    assert layers.project_file(deep) is None
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert layers.project_file(deep) is None
    (project / "pyproject.toml").write_text("[tool.lacuna]\nmax_lines = 2\n")
    assert layers.project_file(deep) == project / "pyproject.toml"
    assert layers.settings(layers.read(deep)).max_lines == 2
    (project / "lacuna.toml").write_text("max_lines = 3\n")
    assert layers.settings(layers.read(deep)).max_lines == 3
    (project / "src" / "lacuna.toml").write_text("max_lines = 4\n")
    assert layers.settings(layers.read(deep)).max_lines == 4


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("max_tokns = 3", "unknown key 'max_tokns', did you mean max_tokens?"),
        ("zzz = 3", "unknown key 'zzz'"),
        ('max_tokens = "many"', "max_tokens must be 1 to 512"),
        ("max_tokens = 0", "max_tokens must be 1 to 512"),
        ("port = 70000", "port must be 0 to 65535"),
        ("max_queued = 0", "max_queued must be a number of at least 1"),
        ("min_confidence = 1.5", "min_confidence must be 0 to 1"),
        ("idle_exit_s = -1", "idle_exit_s must be a number of at least 0"),
        ("log_code = 1", "log_code must be true or false"),
        ('allowed_hosts = "box"', "allowed_hosts must be a list of texts"),
        ("host = 1", "host must be a text"),
        ('device = "gpu"', "device must be cpu, cuda, cuda:N, mps or empty"),
        ('multiline = "often"', 'multiline must be "always" or "auto" or "never"'),
    ],
)
def test_a_wrong_line_is_named_with_its_file(own: Path, line: str, problem: str) -> None:
    own.write_text(f"{line}\nautomatic = false\n")
    found = layers.read(None)
    assert problems(found) == [f"{own}: {problem}"]
    assert layers.settings(found).automatic is False
    with pytest.raises(ConfigError, match=r"lacuna\.toml"):
        layers.required(found)


@pytest.mark.parametrize(
    "line",
    [
        'host = "0.0.0.0"',
        'token = "x"',
        'engine = "evil:load"',
        'log_file = "/etc/passwd"',
        'allowed_hosts = ["evil.example"]',
        'allowed_origins = ["https://evil.example"]',
        "port = 22",
        "threads = 200",
        "max_held_bytes = 1",
    ],
)
@pytest.mark.parametrize("name", ["lacuna.toml", "pyproject.toml"])
def test_a_project_cannot_set_what_could_do_harm(own: Path, project: Path, name: str, line: str) -> None:
    (project / name).write_text(("[tool.lacuna]\n" if name == "pyproject.toml" else "") + line + "\n")
    found = layers.read(project)
    key = line.partition(" ")[0]
    assert problems(found) == [f"{project / name}: {key} cannot be set by a project, only in your own {own}"]
    assert layers.effective(found)[key].source == "default"
    own.write_text(line + "\n")
    own.chmod(0o600)
    assert layers.effective(layers.read(None))[key].source == str(own)


def test_a_project_names_a_model_but_no_file(own: Path, project: Path) -> None:
    for model, number in (("qwen2.5-coder-0.5b", 0), ("./evil.gguf", 1), ("/tmp", 1)):
        (project / "lacuna.toml").write_text(f'model = "{model}"\n')
        assert len(problems(layers.read(project))) == number, model


def test_a_model_in_the_users_file_is_relative_to_it(own: Path) -> None:
    (own.parent / "tiny.gguf").write_bytes(b"GGUF")
    own.write_text('model = "tiny.gguf"\n')
    assert layers.settings(layers.read(None)).model == str(own.parent / "tiny.gguf")
    for model in ("qwen2.5-coder-0.5b", "", "~nobody-of-this-name/x.gguf"):
        own.write_text(f'model = "{model}"\n')
        assert layers.settings(layers.read(None)).model == model


def test_a_file_in_place_of_the_users(own: Path, tmp_path: Path) -> None:
    own.write_text("max_active = 1\n")
    other = tmp_path / "other.toml"
    other.write_text('host = "::1"\nallowed_hosts = ["box", "box.local"]\n')
    service = layers.service([*layers.read(None, user=other), SettingsLayer("", {"port": 99, "log_code": True})])
    assert service == ServerConfig(host="::1", port=99, allowed_hosts=("box", "box.local"), log_code=True)
    table = tmp_path / "pyproject.toml"
    table.write_text("[project]\n")
    assert problems(layers.read(None, user=table)) == [f"{table}: unknown key 'project'"]
    missing = tmp_path / "none.toml"
    assert problems(layers.read(None, user=missing)) == [f"{missing}: No such file or directory"]
    for data in (b"\xff", b"threads = "):
        other.write_bytes(data)
        (problem,) = problems(layers.read(None, user=other))
        assert problem.startswith(f"{other}: ")
