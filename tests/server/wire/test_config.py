import msgspec
import pytest

from lacuna_server.wire.config import ServerConfig, Settings


@pytest.mark.parametrize("name", ["threads", "device", "port"])
def test_a_key_of_both_structs_has_one_meaning(name: str) -> None:
    mine, theirs = (
        next(key for key in msgspec.structs.fields(struct) if key.name == name) for struct in (Settings, ServerConfig)
    )
    assert (mine.type, mine.default) == (theirs.type, theirs.default)
