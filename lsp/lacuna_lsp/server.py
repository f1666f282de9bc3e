"""Builds the language server of one client, with every feature and command."""

from collections.abc import Awaitable, Callable

from lacuna_lsp.commands import COMMANDS
from lacuna_lsp.features import FEATURES, OPTIONS
from lacuna_lsp.session.server_connection import Server
from lacuna_server.client.client import Address


def build(locate: Callable[..., Awaitable[Address]]) -> Server:
    """Returns a server for one client; ``locate`` returns the engine's address."""
    server = Server(locate)
    for method, handler in FEATURES.items():
        server.feature(method, OPTIONS.get(method))(handler)
    for name, command in COMMANDS.items():
        server.command(name)(command)
    return server
