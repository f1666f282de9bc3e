"""``lacuna setup`` and ``lacuna uninstall``: from an installed program to suggestions in the editors, and back.

The editors on this machine, and what to paste into the settings of each so that it uses this installation.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

import lacuna_server
from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.hub import models
from lacuna_model.hub.atomic import ANSWERS, user_folder
from lacuna_model.hub.models import Choice, ModelInfo
from lacuna_server.cli import serve
from lacuna_server.cli.doctor import as_text, line_seconds
from lacuna_server.cli.models import (
    PREPARED,
    YesOption,
    confirm,
    fetched,
    in_megabytes,
    progress_bar,
    progress_lines,
    remove,
    size_of,
    suited,
)
from lacuna_server.client import lifecycle
from lacuna_server.refactor import journal
from lacuna_server.wire import layers
from lacuna_server.wire.config import DEFAULT_PORT
from lacuna_server.wire.layers import SettingsLayer

# Not lacuna-lsp: the folder of an installation's commands may not be on the path.
LANGUAGE_SERVER = (sys.executable, "-I", "-m", "lacuna_lsp")
VS_CODES = {
    "code": "VS Code",
    "code-insiders": "VS Code Insiders",
    "codium": "VSCodium",
    "cursor": "Cursor",
    "windsurf": "Windsurf",
}
EXTENSION = "install the extension, the .vsix of this platform, by Extensions: Install from VSIX..."


class EditorProgram(msgspec.Struct, frozen=True):
    """An editor: its program, the file of its settings, the text to paste there, and what else to do ("": nothing)."""

    name: str
    program: str
    file: str
    paste: str
    also: str = ""


def editor_programs(url: str) -> list[EditorProgram]:
    """The editors on the path, for a service at ``url``."""
    command = f'"lacuna.command": {json.dumps(LANGUAGE_SERVER)}'
    package = Path(lacuna_server.__file__).parent
    wheel, clone = package / "neovim", package.parents[1] / "editor-clients/neovim"
    folder, *words = (
        json.dumps(one, ensure_ascii=False) for one in (str(wheel if wheel.is_dir() else clone), *LANGUAGE_SERVER)
    )
    plugin = (  # a string of Lua is written as one of JSON
        f"vim.opt.runtimepath:append({folder})\n"
        f"vim.lsp.config('lacuna', {{ cmd = {{ {', '.join(words)} }} }})\n"
        "vim.lsp.enable('lacuna')"
    )
    endpoint = f"let g:llama_config = {{ 'endpoint_fim': '{url}/infill' }}"
    service = {"api_url": f"{url}/v1/completions", "model": "lacuna", "prompt_format": "qwen"}
    zed = f'"edit_predictions": {json.dumps({"provider": "open_ai_compatible_api", "open_ai_compatible_api": service})}'
    editors = {program: (name, "settings.json", command, EXTENSION) for program, name in VS_CODES.items()} | {
        "nvim": ("Neovim", "~/.config/nvim/init.lua", plugin, ""),
        "vim": ("Vim", "~/.vimrc", endpoint, "install llama.vim, which asks this service"),
        "zed": ("Zed", "settings.json", zed, ""),
    }
    return [
        EditorProgram(name, found, file, paste, also)
        for program, (name, file, paste, also) in editors.items()
        if (found := shutil.which(program)) is not None
    ]


# What Lacuna keeps in the cache folder, which may be shared with other programs.
CACHED = ("downloads", "kernels", "models", "names", "prepared", "speed", "workspaces")


def setup(yes: YesOption = False, json_output: JsonOption = False) -> None:
    """Choose and download a model for this machine, start the service, and say what to paste into your editors.

    What is there already stays as it is, and what was interrupted goes on. With --json, the first line says what
    Lacuna keeps on this machine (what ``lacuna uninstall`` removes) and which file announces its service; the last line
    is the result; the lines between them tell the progress.
    """
    if json_output:
        output.print_json({"keeps": [str(one) for one in _places()], "announced": str(lifecycle.announcement())})
    import asyncio

    from lacuna_server.client import starting

    found = layers.required(layers.read(None))
    if missing := _missing(suited(found).name):
        size = sum(info.size for info in missing)
        place = models.cache_dir()
        needed = f"up to {in_megabytes(size)}, which take up to {in_megabytes(size * (1 + PREPARED))} in {place}"
        if not yes:
            confirm(f"Download {needed}?", f"this downloads {needed}")
    with progress_lines() if json_output else progress_bar() as report:
        choice = fetched(found, report)
        report("start", 0, 0)
        address = asyncio.run(starting.find_or_start(*starting.arguments(layers.settings(found))))
    there = editor_programs(address.url)
    if json_output:
        told = {"model": choice.name, "why": choice.why, "service": address.url, "editors": there}
        output.print_json(told | {"fixed": _is_fixed(address.url, found)})
    else:
        output.print_exact(_report(choice, address.url, there, fixed=_is_fixed(address.url, found)))


def _missing(name: str) -> list[ModelInfo]:
    """The models to download: the one of that name, if it is one of the registry, and the one that drafts for it."""
    if models.own(name) is not None:
        return []
    info = models.find(name)
    wanted = [info, models.drafting(info.parameters)]
    return [one for one in wanted if one is not None and models.state(one) != "ready"]


def _is_fixed(url: str, found: Sequence[SettingsLayer]) -> bool:
    """Whether the service will have this address after its next start, too."""
    return urlsplit(url).port == (layers.effective(found)["port"].value or DEFAULT_PORT)


def _switch(choice: Choice) -> list[str]:
    """How to have the other one of the two usual models, and what that means."""
    others = {models.SMALL_MODEL: models.LARGE_MODEL, models.LARGE_MODEL: models.SMALL_MODEL}
    if (other := others.get(choice.name)) is None:
        return []
    what = "better, and slower" if other == models.LARGE_MODEL else "faster, and more often wrong"
    seconds = line_seconds(models.find(other).parameters)
    speed = "" if seconds is None else f", about {as_text(seconds)}"
    if os.environ.get(models.MODEL_VARIABLE):  # it goes before any file
        how = [f"set the variable {models.MODEL_VARIABLE},", f"           {models.MODEL_VARIABLE}={other}"]
    else:
        how = [f"put this line into {layers.user_file()},", f'           model = "{other}"']
    return [
        f"other    {other}: {what}{speed}; to switch, {how[0]}",
        how[1],
        f"         then: lacuna models pull {other} && lacuna stop && lacuna setup",
    ]


def _report(choice: Choice, url: str, there: "Iterable[EditorProgram]", *, fixed: bool) -> str:
    lines = [f"model    {choice.name}: {choice.why}", *_switch(choice), f"service  {url}"]
    if not fixed:
        lines += [
            "         Another program has the usual port, so this address holds until the service ends. Our own",
            "         clients find the next one; for others, put a free port into the same file: port = 8399",
        ]
    for editor in there:
        lines += ["", f"{editor.name} ({editor.program}): paste into {editor.file}"]
        lines += [f"  {line}" for line in editor.paste.splitlines()]
        lines += [f"and {editor.also}"] * bool(editor.also)
    lines += ["", "Any other editor that speaks LSP runs: " + " ".join(LANGUAGE_SERVER)]
    lines += ["", "Next: open a file in your editor, and type. Or try it here: lacuna complete FILE --at LINE:COL"]
    lines += ["If something does not work, lacuna doctor says what."]
    return "\n".join(lines) + "\n"


def uninstall(yes: YesOption = False, json_output: JsonOption = False) -> None:
    """Stop the service, and remove the models and all else that Lacuna keeps; your settings and the program stay."""
    kept = [one for one in _places() if one.exists() or one.is_symlink()]
    size = size_of(kept)
    running = lifecycle.find() is not None
    if kept and not yes:
        places = ", ".join(sorted({str(one.parent) for one in kept}))
        confirm(f"Remove {size} from {places}?", f"this removes {size} from {places}")
    if running:
        serve.stop()
    remove(kept)
    for folder in sorted({one.parent for one in kept}, reverse=True):  # a folder comes before the one that has it
        with contextlib.suppress(OSError):  # it is not empty, a link, a mount point, or in a folder of somebody else's
            folder.rmdir()
    if json_output:
        output.print_json({"removed": [str(one) for one in kept], "stopped": running})
        return
    settings = layers.user_file()
    said = [f"{settings} stays"] if settings.exists() else []
    said.append("to remove the program: uv tool uninstall lacuna-code, pipx uninstall lacuna-code, or pip uninstall")
    output.say(f"{size} are free again; {'; '.join(said)}")


def _places() -> list[Path]:
    """Where Lacuna keeps files and folders on this machine, but for the settings and the program.

    Some may not exist. An editor's plugin that is removed removes them, too, without this program.
    """
    cached = [models.cache_dir() / name for name in CACHED]
    state = user_folder("state")
    return [*cached, journal.state_folder(), state / "run", state / ANSWERS, user_folder("log")]
