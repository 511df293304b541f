"""Questions of the library. The library asks a callback for a value, such as a token or payload, and the host gives it
at once or later."""

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
"""A callback returns LATER if it keeps its request and gives the value later: the host then calls ``answer()`` or
``fail()`` of the request from any thread, before the deadline."""


class Causes:
    """The newest exceptions that the callbacks of one playback have raised. They become the ``__cause__`` of errors.
    Threads: any."""

    def __init__(self) -> None:
        self._newest: dict[Status, BaseException] = {}

    def swap(self, status: Status, cause: BaseException | None) -> BaseException | None:
        """Sets the exception that becomes the cause of errors with this status; None removes it. Returns the earlier
        exception."""
        before = self._newest.pop(status, None)
        if cause is not None:
            self._newest[status] = cause
        return before

    def chain(self, error: UsherError) -> UsherError:
        """If an exception of a callback caused the error, sets this exception as the ``__cause__`` of the error.
        Returns the error."""
        status = error.status
        cause = self._newest.get(status)
        if cause is None and (
            status is Status.RENEWAL_MISSED or (status is Status.SESSION and error.origin is Origin.LOCAL)
        ):
            cause = self._newest.get(Status.CALLBACK)  # The renewals failed because the host gave no payload.
        if cause is not None and error.__cause__ is None:
            error.__cause__ = cause
        return error


class Question(Generic[Answer]):
    """The library needs a value from the host. Answer once, from any thread, before the delegate's deadline.

    Attributes:
        tag: the `tag` given to Player.play().
    """

    _fails_as: Status
    """The status that the error has if the host gives no answer."""

    def __init__(
        self, completion: int, playback: Playback | None, tag: object, causes: Causes | None = None, **attributes: Any
    ) -> None:
        """`attributes`: the values of the attributes that the subclass declares."""
        vars(self).update(attributes)
        self.tag = tag
        self._completion = completion
        self._answered = False
        # answer() and fail() hold this lock until the library has the answer. The answer may wake another thread;
        # because of the lock, `answered` is then True for that other thread.
        self._lock = threading.RLock()
        # This reference is weak, because an exception that is kept as a cause refers to this object through its stack
        # frames.
        self._reference = None if playback is None else weakref.ref(playback)
        self._causes = causes or (Causes() if playback is None else playback._causes)

    def _copy(self, kind: type[Kind], playback: Any, tag: object) -> Kind:
        """Returns an object of class `kind` for the same question, with another playback object and tag.

        The host may answer either object; the first answer counts.
        """
        copy = kind.__new__(kind)
        vars(copy).update(vars(self))
        copy.tag = tag
        copy._answered, copy._lock = False, threading.RLock()
        copy._reference = None if playback is None else weakref.ref(playback)
        return copy

    @property
    def playback(self) -> Playback | None:
        """The playback that needs the value; None if Python has freed the object."""
        return None if self._reference is None else self._reference()

    @property
    def answered(self) -> bool:
        """Whether answer() or fail() was called. If another thread is in such a call, waits until the call returns."""
        with self._lock:
            return self._answered

    def answer(self, value: Answer) -> None:
        """Gives the value to the library.

        Raises:
            InvalidCompletionError: the question already has an answer, or its deadline has passed. The call does
                nothing.
            InvalidArgumentError: not a valid value. You may answer again.
        """
        self._complete(value)

    def fail(self, cause: BaseException | None = None) -> None:
        """Answers the question without a value.

        Args:
            cause: the reason. It becomes the ``__cause__`` of the errors that follow.

        Raises:
            InvalidCompletionError: like answer().
        """
        with self._lock:
            before = self._causes.swap(
                self._fails_as, cause
            )  # set before the call, because a waiting thread may continue before the call returns
            try:
                self._complete(None)
            except BaseException:
                self._causes.swap(self._fails_as, before)
                raise

    def _send_answer(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls the library function that completes the request."""
        with self._lock:
            function(self._completion, *arguments)
            self._answered = True

    def _complete(self, value: Answer | None) -> None:
        """Converts the value for C and calls `_send_answer`."""
        raise NotImplementedError

    def _give(self, value: Answer | None) -> None:
        """Answers with the return value of a callback. Does nothing after the deadline, since the library has already
        reported an error then."""
        with contextlib.suppress(InvalidCompletionError):
            if value is None:
                self.fail()
            else:
                self.answer(value)

    def _give_up(self, cause: BaseException) -> None:
        """Answers without a value, because the callback raised an exception. Does nothing after the deadline, since the
        library has already reported an error then."""
        with contextlib.suppress(InvalidCompletionError):
            self.fail(cause)


Reply = Union[Answer, "Future[Answer]", "Future[Answer | None]", Later, None]
"""``Reply[X]`` is the return value of a callback that must give an X: the X, None (no value), LATER (the host gives it
later with ``answer()`` or ``fail()`` of the request), or a concurrent.futures.Future for the X or None."""


def ask(question: Question[Any], callback: Callable[[Any], Any], report: Callable[[BaseException], None]) -> None:
    """Runs a callback that must give a value. If the callback raises an exception, the library gets a failure as the
    answer."""

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
