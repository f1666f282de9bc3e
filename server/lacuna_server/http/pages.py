"""The web pages: the playground and the protocol."""

from importlib.resources import files

from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from lacuna_server.wire.protocol_page import html

PLAYGROUND = str(files("lacuna_server") / "playground")
# All content comes from this server, nothing is inline, and no other page may frame these pages.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def pages() -> list[BaseRoute]:
    """Return the routes of both pages."""
    return [
        Route("/", lambda request: FileResponse(f"{PLAYGROUND}/index.html", headers=HEADERS)),
        Route("/protocol", lambda request: Response(html(), media_type="text/html", headers=HEADERS)),
        Mount("/playground", StaticFiles(directory=PLAYGROUND)),
    ]
