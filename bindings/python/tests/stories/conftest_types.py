"""Names of the conftest for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import Stage as Stage
    from .conftest import StageFactory as StageFactory
else:
    Stage = StageFactory = Any
