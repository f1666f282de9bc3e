"""Lists the HTTP routes that the application mounts."""

from collections.abc import Callable
from importlib.metadata import version

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from lacuna_server.http import openapi
from lacuna_server.http.endpoint import endpoints
from lacuna_server.http.metrics import Metrics
from lacuna_server.http.pages import pages
from lacuna_server.http.shapes.other import PLAIN, Plain
from lacuna_server.http.shapes.table import SHAPES
from lacuna_server.service.service import Service


def routes(service: Service, metrics: Metrics | None = None) -> list[BaseRoute]:
    """Return every HTTP route of the service, which counts its requests in ``metrics``."""
    metrics = metrics or Metrics(service)
    described = msgspec.json.encode(openapi.document(version("lacuna-code")))

    def serve(plain: Plain) -> Callable[[Request], Response]:
        return lambda request: plain.serve(service, metrics)

    def describe(request: Request) -> Response:
        return Response(described, media_type="application/json")

    return [
        *(Route(plain.path, serve(plain), name=plain.name) for plain in PLAIN),
        *(route for shape in SHAPES for route in endpoints(service, metrics, shape)),
        Route("/openapi.json", describe),
        *pages(),
    ]
