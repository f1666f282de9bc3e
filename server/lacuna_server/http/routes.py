"""Lists the HTTP routes that the application mounts, with those of the web pages: the playground and the protocol."""

from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from lacuna_server.http import openapi
from lacuna_server.http.endpoint import endpoints
from lacuna_server.http.metrics import Metrics
from lacuna_server.http.shapes.other import PLAIN, Plain
from lacuna_server.http.shapes.table import SHAPES
from lacuna_server.service.service import Service
from lacuna_server.wire.protocol_page import html

PLAYGROUND = str(files("lacuna_server") / "playground")
# All content comes from this server, nothing is inline, and no other page may frame these pages.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def routes(service: Service, metrics: Metrics | None = None) -> list[BaseRoute]:
    """Return every HTTP route of the service, which counts its requests in ``metrics``."""
    metrics = metrics or Metrics(service)
    described = msgspec.json.encode(openapi.document(version("lacuna-code")))

    def serve(plain: Plain) -> Callable[[Request], Response]:
        return lambda request: plain.serve(service, metrics, request)

    def describe(request: Request) -> Response:
        return Response(described, media_type="application/json")

    return [
        *(Route(plain.route, serve(plain), name=plain.name) for plain in PLAIN),
        *(route for shape in SHAPES for route in endpoints(service, metrics, shape)),
        Route("/openapi.json", describe),
        *_pages(),
    ]


def _pages() -> list[BaseRoute]:
    """Return the routes of both pages."""
    return [
        Route("/", lambda request: FileResponse(f"{PLAYGROUND}/index.html", headers=HEADERS)),
        Route("/protocol", lambda request: Response(html(), media_type="text/html", headers=HEADERS)),
        Mount("/playground", StaticFiles(directory=PLAYGROUND)),
    ]
