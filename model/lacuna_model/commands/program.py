"""A command line: its commands, their help, options that several share, and errors: one line and an exit code each."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperArgument, TyperOption

from lacuna_model.commands import output
from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.text.lines import well_formed

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 1


@dataclass(frozen=True)
class Program:
    """A program of ``commands``, each with the module in ``package`` that has it, or with a module's whole name.

    A module has a function of the command's name, or, as ``app``, a family of commands.

    ``name`` is what one types, ``install`` installs the libraries that its commands need. The help lists the commands
    in their order here, under the ``headings`` of some of them: each goes on up to the next.
    """

    name: str
    help: str
    package: str
    commands: Mapping[str, str]
    install: str
    headings: Mapping[str, str] = field(default_factory=dict)

    def app(self, only: str = "") -> typer.Typer:
        """The commands of the module ``only``, by default of all: a command's start imports those of no other."""
        made = typer.Typer(
            name=self.name,
            help=self.help,
            no_args_is_help=True,
            add_completion=" " not in self.name,  # a shell completes the name of a program alone
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        heading: str | None = None
        for name, module in self.commands.items():
            heading = self.headings.get(name, heading)
            if only in ("", module):
                found = import_module(module if "." in module else f"{self.package}.{module}")
                if isinstance(family := getattr(found, "app", None), typer.Typer):
                    made.add_typer(family, rich_help_panel=heading)
                else:
                    made.command(name, rich_help_panel=heading)(getattr(found, name.replace("-", "_")))
        made.callback()(_options)
        return made

    def main(self, arguments: list[str] | None = None) -> NoReturn:
        """Runs the command line and exits; a failure is one line on stderr, never a traceback."""
        sys.exit(self.run(sys.argv[1:] if arguments is None else arguments))

    def run(self, arguments: list[str]) -> int:
        """Runs a command and returns its exit code."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller; what is printed goes nowhere
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (open as long as the process lives)
        try:
            for argument in arguments:
                if argument != well_formed(argument) and not os.path.lexists(argument):
                    raise RequestError(f"the argument {argument!r} is neither UTF-8 text nor an existing file")
            command = self.app(self.commands.get(arguments[0], "") if arguments else "")
            code = command(arguments, prog_name=self.name, standalone_mode=False)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except (KeyboardInterrupt, typer.Abort):  # Abort: Ctrl-C or Ctrl-D at a question
            return INTERRUPTED
        except BrokenPipeError:
            # The reader of the output has gone: flushing the buffered rest must not fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        except typer.TyperException as error:
            if message := error.format_message():  # empty where no subcommand was given: the help is printed already
                output.say(f"{message} (see: {self.name} --help)")
            return BAD_INPUT
        except ModuleNotFoundError as error:
            output.say(f"this needs {error.name}: {self.install}")
        except (LacunaError, OSError) as error:
            output.say(output.failure(error))
        return BAD_INPUT


# What stands for a value in the help; its limits would leave no room for words.
SHOWN_TYPES = {"int": "N", "float": "X", "str": "TEXT", "path": "PATH"}


def _shown_type(self: TyperArgument | TyperOption, ctx: Any) -> str:
    """Returns what the help shows as the type of a parameter: nothing for a flag or a positional argument."""
    if isinstance(self, TyperArgument) or self.is_flag:
        return ""
    if self.metavar is not None:
        return self.metavar
    name = self.display_type(ctx).partition(" ")[0].strip("<>")
    return SHOWN_TYPES.get(name, name)


# Typer has no setting for this; it would show <bool> for every flag.
TyperArgument.display_type_rich = _shown_type  # type: ignore[assignment, method-assign]
TyperOption.display_type_rich = _shown_type  # type: ignore[method-assign]
TyperOption._get_number_range_help_str = lambda self: None  # type: ignore[method-assign]


def _print_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        print(importlib.metadata.version("lacuna-code"))
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


# What commands of several programs share.
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on stdout.")]
LISTED_HELP = "Use this model: a name from `lacuna models list`."
MODEL_HELP = f"{LISTED_HELP[:-1]}, a GGUF file with fill-in-the-middle tokens, or a folder with safetensors."
DEVICE_HELP = "Run the model on cpu, cuda, cuda:N or mps; by default on a CUDA GPU if there is one."
