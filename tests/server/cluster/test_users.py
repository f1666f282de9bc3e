from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from lacuna_cluster import users
from lacuna_cluster.users import Usage, User
from lacuna_server.wire.config import ConfigError
from lacuna_server.wire.protocol import ServiceError


def test_a_user_that_is_added_is_found_by_the_token_alone(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    tokens = {name: users.add(file, name, 60) for name in ("alice", "bob@example.org")}
    known = users.read(file)
    assert {name: users.find(known, token.encode()) for name, token in tokens.items()} == {n: n for n in tokens}
    assert known["alice"].requests_per_minute == 60
    assert users.find(known, b"another") == users.find(known, b"") == ""
    assert not any(token in file.read_text() for token in tokens.values())
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    for name in ("alice", "no name"):
        with pytest.raises(ConfigError):
            users.add(file, name, 0)
    assert file.read_bytes() == before
    with pytest.raises(ConfigError, match="No such file"):
        users.read(tmp_path / "none.toml")


@pytest.mark.parametrize("text", ["", "[alice]\nrequests_per_minute = 5", "[alice]\n# named by the proxy"])
def test_a_user_is_added_to_a_file_that_somebody_edited(tmp_path: Path, text: str) -> None:
    file = tmp_path / "users.toml"
    file.write_text(text)
    file.chmod(0o600)
    token = users.add(file, "bob", 60)
    known = users.read(file)
    assert set(known) == {"bob", *(["alice"] if text else [])}
    assert users.find(known, token.encode()) == "bob"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it names no user"),
        ("[alice", "Expected ']'"),
        ('[alice]\ntoken = "secret"', "Expected `str` matching regex"),
        (f'[alice]\ntoken = "{users.hashed("t")}\\n"', "Expected `str` matching regex"),
        ("[alice]\ncolour = 1", "unknown field `colour`"),
        ("[alice]\nrequests_per_minute = -1", "Expected `int` >= 0"),
        ('["a b"]', "'a b' is not a user's name"),
        ('[""]', "'' is not a user's name"),
        (f'[a]\ntoken = "{users.hashed("t")}"\n[b]\ntoken = "{users.hashed("t")}"', "two users have the same token"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "users.toml"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        users.read(file)
    assert why in str(caught.value)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


USERS = {"alice": User(requests_per_minute=3), "bob": User()}


def test_a_quota_holds_for_a_minute_and_over_all_ingresses(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 600.0
    monkeypatch.setattr(users.time, "time", lambda: now)
    one, other = Usage(USERS, CollectorRegistry()), Usage(USERS, CollectorRegistry())
    one.admit("alice")
    other.admit("alice")
    one.learn([other.figures("other")])
    one.admit("alice")
    now += 45
    with pytest.raises(ServiceError) as caught:
        one.admit("alice")
    assert (caught.value.code, caught.value.retry_after_ms) == ("rate_limited", 15_000)
    for _ in range(100):
        one.admit("bob")
        one.admit("")
    now += 15
    one.learn([other.figures("other")])
    one.admit("alice")
