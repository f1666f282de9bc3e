from lacuna_model.snippets.packages.module_names import MAX_SIGNATURE
from lacuna_model.snippets.packages.python_module import read

STUB = '''\
"""Text with code: def hidden(): pass"""
import sys
from collections.abc import Callable, Iterable as Iter
from .inner import helper
from .many import *

LIMIT: int
if sys.version_info >= (3, 8):
    def later(x: int) -> str: ...

@overload
def zeros(shape: int, dtype: type = ..., order: str = "C, D") -> list[int]: ...
@overload
def zeros(shape: int) -> list[int]: ...

def outer(a,
          b=1,  # the second
          *rest):
    inner_value = 1
    def inner(): ...

class Layer(Base[int], metaclass=Meta):
    size: int
    def __init__(self, size: int, bias: bool = True) -> None: ...
    async def run(self, *, fast=False): ...
    class Deep:
        def hidden(self): ...

class Point(NamedTuple):
    x: int
    y: int
'''


def test_a_stub_has_names_and_members_with_their_first_signatures() -> None:
    module = read(STUB)
    assert module.names == {
        "LIMIT": "LIMIT: int",
        "later": "def later(x: int) -> str",
        "zeros": 'def zeros(shape: int, dtype: type = ..., order: str = "C, D") -> list[int]',
        "outer": "def outer(a, b=1, *rest)",
        "Layer": "class Layer(size: int, bias: bool = True)",
        "Point": "class Point(x: int, y: int)",
    }
    assert module.members["Layer"] == {
        "size": "size: int",
        "__init__": "def __init__(size: int, bias: bool = True) -> None",
        "run": "def run(*, fast=False)",
        "Deep": "",
    }
    assert module.imported["helper"] == (".inner", "helper")
    assert module.imported["Iter"] == ("collections.abc", "Iterable")
    assert module.stars == (".many",)
    assert not module.is_open
    assert read("def __getattr__(name): ...\n").is_open
    assert read("globals().update(x)\n").is_open


def test_a_long_signature_loses_its_annotations() -> None:
    parameters = [f"parameter_{number}: dict[str, list[tuple[int, int]]] = None" for number in range(7)]
    (signature,) = read(f"def f({', '.join(parameters)}) -> None: ...\n").names.values()
    assert signature == f"def f({', '.join(f'parameter_{number} = None' for number in range(7))})"
    (signature,) = read(f"def f({', '.join(f'parameter_{number}' for number in range(100))}): ...\n").names.values()
    assert len(signature) <= MAX_SIGNATURE
    assert signature.endswith("...)")
