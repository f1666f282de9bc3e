from collections.abc import Callable

import pytest

from lacuna_model.snippets.packages import declared_module, python_module, script_module
from lacuna_model.snippets.packages.module_names import MAX_NAMES, ModuleNames


@pytest.mark.parametrize(
    ("read", "line"),
    [
        (python_module.read, "def f{}(): ...\n"),
        (script_module.read, "export function f{}(): void;\n"),
        (script_module.read, "export { f{} };\n"),
        (declared_module.READERS["go"], "func F{}() {\n}\n"),
        (declared_module.READERS["rust"], "pub fn f{}() {\n}\n"),
    ],
)
def test_a_module_that_is_read_in_part_may_have_more_names(read: Callable[[str], ModuleNames], line: str) -> None:
    for count, is_open in ((200, False), (MAX_NAMES + 1, True)):
        text = "".join(line.replace("{}", str(number)) for number in range(count))
        assert read(text).is_open is is_open
