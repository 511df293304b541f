"""Names of the stage for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stage import Stage as Stage
    from stage import StageFactory as StageFactory
else:
    Stage = StageFactory = Any
