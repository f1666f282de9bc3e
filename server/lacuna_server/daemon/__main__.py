"""Runs the service that a client starts: ``python -I -m lacuna_server.daemon --model NAME ...``.

It is ``lacuna serve`` without the command line's own modules, which take a third of the time until it listens.
"""

import argparse
import sys
from pathlib import Path

from lacuna_model.core.errors import LacunaError
from lacuna_server.daemon import serving

# Nobody has to end a service that a client started: it ends after half an hour without use.
USUAL = {"idle_exit_s": 1800.0}


def main() -> int:
    """Serve; returns the exit code. A failure is one line, as of ``lacuna serve``, which has the same options."""
    parser = argparse.ArgumentParser(prog="lacuna_server.daemon", argument_default=argparse.SUPPRESS)
    for name, kind in (("model", str), ("device", str), ("threads", int), ("port", int), ("log-file", str)):
        parser.add_argument(f"--{name}", type=kind)
    parser.add_argument("--idle-exit", type=float, dest="idle_exit_s")
    parser.add_argument("--config", type=Path)
    flags = vars(parser.parse_args())
    try:
        serving.serve(serving.configured(flags, flags.pop("config", None), USUAL))
        return 0
    except KeyboardInterrupt:
        return 130
    except (LacunaError, OSError) as error:
        from lacuna_model.commands import output  # only here, since a service that starts prints nothing

        output.say(output.failure(error))
    return 2


if __name__ == "__main__":
    sys.exit(main())
