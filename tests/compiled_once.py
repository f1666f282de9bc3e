"""In place of the system's C compiler: it compiles the kernels once for all tests, which takes up to 16 s for each."""

import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

# The kernels' library has a name that depends on its sources and on the compiler's flags, and is the last argument.
SCRIPT = """#!/bin/sh
for made; do :; done
case "$made" in */layer-*.part) ;; *) exec {real} "$@" {options} ;; esac
name="${{made##*/}}"
kept={kept}/"${{name%%.*}}"
exec 9> "$kept.lock"
command -v flock > /dev/null && flock 9
if [ -e "$kept" ]; then exec cp "$kept" "$made"; fi
{real} "$@" {options} && cp "$made" "$kept.new" && mv "$kept.new" "$kept"
"""


def install(folder: Path, *compilers: str, options: str = "") -> Path | None:
    """Write the compiler to a folder for programs, which is returned; None without one of ``compilers`` on the path.

    It is called with these ``options`` besides.
    """
    path = os.pathsep.join(one for one in os.get_exec_path() if not Path(one).is_relative_to(folder))
    real = next(filter(None, (shutil.which(name, path=path) for name in compilers)), None)
    if real is None:
        return None
    version = subprocess.run([real, "--version"], capture_output=True, check=True).stdout
    kept = folder / hashlib.sha256(version + options.encode()).hexdigest()[:16]
    programs = kept / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    new = programs / f"cc.{os.getpid()}"
    new.write_text(SCRIPT.format(real=shlex.quote(real), kept=shlex.quote(str(kept)), options=options))
    new.chmod(0o755)
    new.replace(programs / "cc")
    return programs
