"""Renders a chat template in a process of its own, which has little time and memory.

A template is a program that came with a model: it may loop, or make a text that fills the memory. This module is that
process, too: ``python -I -m lacuna_model.loading.chat_rendering`` reads a :class:`Task` from stdin and writes a
:class:`Rendered` to stdout.
"""

import contextlib
import subprocess
import sys

import msgspec

from lacuna_model.core.errors import RequestError

# Of the process: seconds of computing, seconds until it is ended however busy the machine is, bytes of memory.
CPU_S = 3
WALL_S = 60.0
MEMORY_BYTES = 512 * 1024 * 1024
LONGEST_CHARS = 1_000_000
LONGEST_REASON = 300
COSTLY = "it takes too much time or memory"


class Task(msgspec.Struct):
    """A template's source, the messages, and other variables by name."""

    source: str
    messages: list[dict[str, str]]
    names: dict[str, str]


class Rendered(msgspec.Struct):
    """The text, or else why there is none."""

    text: str = ""
    refusal: str = ""


def render(task: Task) -> Rendered:
    """The text of a chat, or why the template refuses the messages, fails or takes too much.

    Raises RequestError where it cannot be tried.
    """
    command = [sys.executable, "-I", "-m", "lacuna_model.loading.chat_rendering"]
    try:
        ended = subprocess.run(
            command, input=msgspec.json.encode(task), capture_output=True, timeout=WALL_S, check=False, cwd="/"
        )
        return msgspec.json.decode(ended.stdout, type=Rendered)
    except OSError as error:
        raise RequestError(f"the model's chat template cannot be rendered: {error.strerror or error}") from error
    except (subprocess.TimeoutExpired, msgspec.MsgspecError):
        return Rendered(refusal=COSTLY)


def _limit() -> None:
    """Limit this process. A system without limits has only that of the time until it is ended."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _rendered(task: Task) -> Rendered:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    try:
        made = environment.from_string(task.source)
        text = made.render(messages=task.messages, add_generation_prompt=True, tools=None, **task.names)
    except Exception as error:  # a template can raise whatever Python raises
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        return Rendered(refusal=reason or type(error).__name__)
    if len(text) > LONGEST_CHARS:
        return Rendered(refusal=f"it makes {len(text)} characters of them; the most are {LONGEST_CHARS}")
    return Rendered(text)


def main() -> None:
    """Render the task on stdin."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    _limit()
    sys.stdout.buffer.write(msgspec.json.encode(_rendered(task)))


if __name__ == "__main__":
    main()
