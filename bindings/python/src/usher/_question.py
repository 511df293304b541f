"""Answer now or later: the question a producing callback (token, payload) is handed."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from ._c.enums import Origin, Status
from ._errors import InvalidCompletionError, UsherError

if TYPE_CHECKING:
    from .playback import Playback

Answer = TypeVar("Answer")
Kind = TypeVar("Kind", bound="Question[Any]")


class Later(Enum):
    """The type of ``LATER``."""

    LATER = "later"


LATER = Later.LATER
"""Returned by a token or payload callback that keeps its request, to call ``answer()`` or ``fail()`` on it from any thread before the deadline."""


class Causes:
    """The exceptions for which questions of one playback had no answer: the ``__cause__`` of the errors that come of it. Threads: any."""

    def __init__(self) -> None:
        self._newest: dict[Status, BaseException] = {}

    def swap(self, status: Status, cause: BaseException | None) -> BaseException | None:
        """Keeps what the newest question came to whose failing has this status; returns what was kept before."""
        before = self._newest.pop(status, None)
        if cause is not None:
            self._newest[status] = cause
        return before

    def chain(self, error: UsherError) -> UsherError:
        """Gives the error its cause, where that was an exception of a callback; returns it."""
        status = error.status
        cause = self._newest.get(status)
        if cause is None and (
            status is Status.RENEWAL_MISSED or (status is Status.SESSION and error.origin is Origin.LOCAL)
        ):
            cause = self._newest.get(Status.CALLBACK)  # the renewals failed, for want of a payload
        if cause is not None and error.__cause__ is None:
            error.__cause__ = cause
        return error


class Question(Generic[Answer]):
    """A question of the library. Answered at most once, in any thread, before the delegate's deadline.

    Attributes:
        tag: the `tag` given to Player.play().
    """

    _fails_as: Status
    """The status of what fails when there is no answer."""

    def __init__(self, completion: int, playback: Playback | None, tag: object, causes: Causes | None = None) -> None:
        self.tag = tag
        self._completion = completion
        self._answered = False
        # Held while the library is told: who goes on because of the answer finds it answered.
        self._lock = threading.RLock()
        # Weak: an exception that is kept as a cause has this object in its frames.
        self._reference = None if playback is None else weakref.ref(playback)
        self._causes = causes or (Causes() if playback is None else playback._causes)

    def _copy(self, kind: type[Kind], playback: Any, tag: object) -> Kind:
        """The same question as an object of class `kind`, with another playback object and tag. Either may be answered; the first answer counts."""
        copy = kind.__new__(kind)
        vars(copy).update(vars(self))
        copy.tag = tag
        copy._answered, copy._lock = False, threading.RLock()
        copy._reference = None if playback is None else weakref.ref(playback)
        return copy

    @property
    def playback(self) -> Playback | None:
        """The playback it is for; None when the object is gone."""
        return None if self._reference is None else self._reference()

    @property
    def answered(self) -> bool:
        """It has its answer, or was told that there is none. Waits for a call that is about to."""
        with self._lock:
            return self._answered

    def answer(self, value: Answer) -> None:
        """Answers.

        Raises:
            InvalidCompletionError: answered before, or too late: the answer does nothing.
            InvalidArgumentError: no possible answer; the question stays open.
        """
        self._complete(value)

    def fail(self, cause: BaseException | None = None) -> None:
        """Says that there is no answer.

        Args:
            cause: why; becomes the ``__cause__`` of the errors that come of it.

        Raises:
            InvalidCompletionError: as answer() does.
        """
        with self._lock:
            before = self._causes.swap(
                self._fails_as, cause
            )  # first, since who waits may go on before the call returns
            try:
                self._complete(None)
            except BaseException:
                self._causes.swap(self._fails_as, before)
                raise

    def _tell(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls what completes it in the library."""
        with self._lock:
            function(self._completion, *arguments)
            self._answered = True

    def _complete(self, value: Answer | None) -> None:
        """Makes of it what C takes, then `_tell`s the library."""
        raise NotImplementedError

    def _give(self, value: Answer | None) -> None:
        """Answers with what a callback returned; where that came too late the library has told so already."""
        with contextlib.suppress(InvalidCompletionError):
            if value is None:
                self.fail()
            else:
                self.answer(value)

    def _give_up(self, cause: BaseException) -> None:
        """Says that there is no answer, because the callback raised; where that came too late the library has told so already."""
        with contextlib.suppress(InvalidCompletionError):
            self.fail(cause)


Reply = Union[Answer, "Future[Answer]", "Future[Answer | None]", Later, None]
"""What a producing callback may return: the answer, None (there is none), LATER, or a Future of the answer."""


def ask(question: Question[Any], callback: Callable[[Any], Any], report: Callable[[BaseException], None]) -> None:
    """Runs a producing callback; whatever happens in it, the library gets an answer or the callback took the question over."""

    def settle(future: Future[Any]) -> None:
        try:
            question._give(future.result())
        except BaseException as error:
            report(error)
            question._give_up(error)

    question._causes.swap(question._fails_as, None)
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
        question._give_up(error)
