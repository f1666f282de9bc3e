from collections.abc import Callable

import pytest

from lacuna_model.snippets.packages.declared_module import READERS
from lacuna_model.snippets.packages.module_names import MAX_NAME, MAX_SIGNATURE, ModuleNames, TooLongError
from lacuna_model.snippets.packages.python_module import read as read_python
from lacuna_model.snippets.packages.script_module import read as read_script


@pytest.mark.parametrize("read", [read_python, read_script, *READERS.values()], ids=["python", "script", *READERS])
@pytest.mark.parametrize(
    "text",
    [
        f"def {'f' * 1_000_000}(): ...\n",
        f"export declare const {'x' * 1_000_000}: number;",
        "func F" + "x" * 1_000_000,
        "def f(" + "(" * 100_000,
        "class A:\n" + "".join(f"{' ' * depth}class A{depth}:\n" for depth in range(1, 500)),
        "def f(x: " + "[" * 50_000 + "]" * 50_000 + "): ...\n",
        "from " + "." * 100_000 + " import x\n",
        "export namespace a {" * 5_000,
        f"export interface A {{ {'a: { ' * 20_000}",
        f"export {{ {'a, ' * 100_000} }};",
        "export class A {\n" + "  m(a: string): void;\n" * 20_000 + "}\n",
        "type T struct {\n" + "\tA struct {\n" * 20_000,
        "func F(\n" * 20_000,
        "impl" + "<" * 200_000,
        "impl<\n" * 50_000,
        "pub " * 100_000,
        "use " + "{" * 100_000,
        "{" * 200_000,
        '"""' * 100_001,
        "'" * 100_001,
        "`" * 100_001,
        "/*" * 100_000,
    ],
    ids=lambda text: text[:12].strip(),
)
def test_a_hostile_module_ends_and_gives_short_names(read: Callable[[str], ModuleNames], text: str) -> None:
    try:
        found = read(text)
    except TooLongError:
        return
    every = [*found.names.items(), *(one for members in found.members.values() for one in members.items())]
    assert all(len(name) <= MAX_NAME and len(told) <= MAX_SIGNATURE for name, told in every)
