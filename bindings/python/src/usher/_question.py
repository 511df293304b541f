"""Answer now or later: the question a producing callback (token, payload) is handed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from ._errors import InvalidCompletionError

if TYPE_CHECKING:
    from .playback import Playback

Answer = TypeVar("Answer")


class Later(Enum):
    """The type of ``LATER``."""

    LATER = "later"


LATER = Later.LATER
"""Returned by a token or payload callback that keeps its request, to call ``answer()`` or ``fail()`` on it from any thread before the deadline."""


class Question(Generic[Answer]):
    """A question of the library. Answered at most once, in any thread, before the delegate's deadline.

    Attributes:
        playback: the playback it is for; None when the object is gone already.
        tag: the `tag` given to Player.play().
    """

    def __init__(self, completion: int, playback: Playback | None, tag: object) -> None:
        self.playback = playback
        self.tag = tag
        self._completion = completion
        self._answered = False

    @property
    def answered(self) -> bool:
        """answer() or fail() succeeded."""
        return self._answered

    def answer(self, value: Answer) -> None:
        """Answers.

        Raises:
            InvalidCompletionError: answered before, or too late: the answer does nothing.
            InvalidArgumentError: no possible answer; the question stays open.
        """
        self._complete(value)
        self._answered = True

    def fail(self) -> None:
        """Says that there is no answer. Raises InvalidCompletionError as answer() does."""
        self._complete(None)
        self._answered = True

    def _complete(self, value: Answer | None) -> None:
        raise NotImplementedError

    def _give(self, value: Answer | None) -> None:
        """Answers with what a callback returned; where that came too late the library has told so already."""
        with contextlib.suppress(InvalidCompletionError):
            if value is None:
                self.fail()
            else:
                self.answer(value)


Reply = Union[Answer, "Future[Answer]", "Future[Answer | None]", Later, None]
"""What a producing callback may return: the answer, None (there is none), LATER, or a Future of the answer."""


def ask(question: Question[Any], callback: Callable[[Any], Any], report: Callable[[BaseException], None]) -> None:
    """Runs a producing callback; whatever happens in it, the library gets an answer or the callback took the question over."""

    def settle(future: Future[Any]) -> None:
        try:
            question._give(future.result())
        except BaseException as error:
            report(error)
            question._give(None)

    try:
        outcome = callback(question)
        if outcome is LATER or question.answered:
            return
        if isinstance(outcome, Future):
            outcome.add_done_callback(settle)
        else:
            question._give(outcome)
    except BaseException as error:
        report(error)
        question._give(None)
