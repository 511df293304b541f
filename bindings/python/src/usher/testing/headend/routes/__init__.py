"""The routes of the head-end, one module per topic. Each module lists its ``ROUTES``."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from .. import paths
from ..service import Route
from . import certificates, expressplay, fps, licenses, operator, sees, ssm

ALL: tuple[Route, ...] = (
    *ssm.ROUTES,
    *operator.ROUTES,
    *certificates.ROUTES,
    *licenses.ROUTES,
    *fps.ROUTES,
    *expressplay.ROUTES,
    *sees.ROUTES,
)
"""The routes of all modules."""


class Router:
    """Finds the route of a request. The path of the request must be exactly the path of the route.

    Args:
        tenant: the first path segment of all routes.
        routes: the routes.
    """

    def __init__(self, tenant: str, routes: Iterable[Route] = ALL) -> None:
        self._table: dict[str, dict[str, Route]] = {}
        for route in routes:
            path = paths.root(tenant) + route.path.format(tenant=quote(tenant))
            self._table.setdefault(path, {})[route.method] = route

    def find(self, method: str, path: str) -> Route | None:
        """Returns the route of a request, or None if path or method is unknown."""
        return self._table.get(path, {}).get(method)

    def methods(self, path: str) -> list[str]:
        """Returns the methods that a path allows; empty if the path is unknown."""
        return sorted(self._table.get(path, {}))
