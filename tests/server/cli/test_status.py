import pytest

from lacuna_server.cli.serve import print_status
from lacuna_server.client.lifecycle import Running
from lacuna_server.wire.protocol import Status

RUNNING = Running(pid=7, url="http://127.0.0.1:1", token="")


@pytest.mark.parametrize(("restarts", "said"), [(0, ""), (1, "once"), (3, "3 times")])
def test_the_status_says_how_often_and_why_the_model_was_started_again(
    restarts: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_status(RUNNING, Status("m", "ready", restarts=restarts, restarted="the model process ran out of memory"))
    lines = capsys.readouterr().out.splitlines()
    wanted = f"started again {said}, the last time because the model process ran out of memory"
    assert lines[-1] == wanted if restarts else len(lines) == 4
