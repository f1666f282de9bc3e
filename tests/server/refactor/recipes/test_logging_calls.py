import pytest
from tests.server.refactor.bench import Bench, Scripted, marked

from lacuna_server.refactor.recipes import by_recipe

REPLACE = by_recipe("logging", {})
INFO = Scripted(lambda region: region.regex.split("|")[0])
HEAD = "import logging\n\nlogger = logging.getLogger(__name__)\n"


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ('print("done")', 'logger.debug("done")'),
        ('print(f"{x} %")', 'logger.debug(f"{x} %")'),
        ("print(x)", 'logger.debug("%s", x)'),
        ('print("got", x, "of 100 %")', 'logger.debug("got %s of 100 %%", x)'),
        ('print("100 %", "done")', 'logger.debug("100 % done")'),
        ("print('it', x)", 'logger.debug("it %s", x)'),
        ("print('\"', x)", 'logger.debug("%s %s", \'"\', x)'),
        ("print(x, y, flush=True)", 'logger.debug("%s %s", x, y)'),
        ("print(x, file=sys.stderr)", 'logger.warning("%s", x)'),
        ("print('a', f(  # why\n    1))", 'logger.debug("a %s", f(  # why\n    1))'),
        ('print("""a\n  b""")', 'logger.debug("""a\n  b""")'),
    ],
)
def test_the_format_string_is_made_from_the_arguments(bench: Bench, call: str, after: str) -> None:
    assert bench.apply(REPLACE, f"{HEAD}\n{call}\n", answer=INFO) == f"{HEAD}\n{after}\n"


@pytest.mark.parametrize(
    "call", ["print()", "print(*x)", "print(x, end='')", "print(x, file=f)", "y = print(x)", "print(x for x in y)"]
)
def test_a_call_that_logging_cannot_express_is_left_alone(bench: Bench, call: str) -> None:
    files, left_out = bench.edits(REPLACE, [bench.source(f"{call}\n")])
    assert files == []
    assert bool(left_out) == call.startswith("print")


CALL = '«print(1)→logger.debug("%s", 1)»'


@pytest.mark.parametrize(
    "text",
    [
        f"«{HEAD}\n\n»{CALL}\n",
        f'"""Doc."""\n\n«{HEAD}\n\n»{CALL}\n',
        'import logging\n\nlog = logging.getLogger()\n«print(1)→log.debug("%s", 1)»\n',
        f"from __future__ import annotations\n«{HEAD}»{CALL}\n",
        f"import logging  # first\nimport os  # os\n«\nlogger = logging.getLogger(__name__)\n»{CALL}  # shown\n",
        f"import logging\nimport os«\n\nlogger = logging.getLogger(__name__)»\r\n{CALL}\n",
    ],
)
def test_the_logger_of_the_module_is_reused_or_added(bench: Bench, text: str) -> None:
    before, after = marked(text)
    assert bench.apply(REPLACE, before, answer=INFO) == after
