"""The multi-instance delegate: several streams at once, each with the content token of its own content identifier."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .. import _border
from .._answers import take
from .._c import abi, ffi
from .._errors import NoTokenError
from .._options import MultiInstanceOptions
from .base import TokenCallback
from .default import CommonDelegate
from .hooks import hooks_of
from .ssp import _SSPDelegate

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..context import Context

Default = TypeVar("Default")


class TokenMap:
    """Content tokens by content identifier: ``delegate.tokens[content_id] = token``. Threads: any.

    Content identifiers are bytes, 1 byte to 64 kB; text is encoded as UTF-8. You can look a token up, but not iterate.
    All methods raise InvalidHandleError if the delegate was freed, InvalidArgumentError for an invalid identifier or
    token.
    """

    def __init__(self, delegate: MultiInstanceDelegate) -> None:
        """Only MultiInstanceDelegate calls it."""
        self._delegate = delegate
        self._handle = delegate._handle

    def __setitem__(self, content_id: bytes | str, token: str) -> None:
        """Sets or replaces a token (setStreamToken).

        Playbacks that wait for this token continue. Playbacks that use the old token send the new token with further
        licence requests.

        Raises:
            FullError: the map is full, and playbacks use all its tokens.
        """
        given = ffi.c_string(_border.text(token, "token"), "token")
        key = _key(content_id)
        _border.passed(lambda: ffi.lib.usher_delegate_set_stream_token(self._handle, *key, given), {"token": token})

    def __getitem__(self, content_id: bytes | str) -> str:
        """Returns the token of a content identifier. Raises KeyError if the map has no token for it."""
        out = abi.ResponseHandle()
        try:
            ffi.lib.usher_delegate_get_stream_token(self._handle, *_key(content_id), ctypes.byref(out))
        except NoTokenError:
            raise KeyError(content_id) from None
        return ffi.text(take(out, 0, "usher_delegate_get_stream_token").data)

    def __delitem__(self, content_id: bytes | str) -> None:
        """Removes a token from the map. Playbacks that use the token keep it. Raises KeyError if the map has no such
        token."""
        try:
            ffi.lib.usher_delegate_remove_stream_token(self._handle, *_key(content_id))
        except NoTokenError:
            raise KeyError(content_id) from None

    def __contains__(self, content_id: object) -> bool:
        if not isinstance(content_id, (bytes, str)):
            return False
        try:
            ffi.lib.usher_delegate_get_stream_token(self._handle, *_key(content_id), None)
        except NoTokenError:
            return False
        return True

    def __len__(self) -> int:
        out = ctypes.c_size_t()
        ffi.lib.usher_delegate_count_stream_tokens(self._handle, ctypes.byref(out))
        return out.value

    def __bool__(self) -> bool:
        return len(self) > 0

    __iter__ = None  # otherwise Python would iterate by calling __getitem__ with 0, 1, 2 ...

    @overload
    def get(self, content_id: bytes | str) -> str | None: ...
    @overload
    def get(self, content_id: bytes | str, default: Default) -> str | Default: ...
    def get(self, content_id: bytes | str, default: Any = None) -> Any:
        """Returns the token of a content identifier, or `default` if the map has no token for it."""
        try:
            return self[content_id]
        except KeyError:
            return default

    def clear(self) -> None:
        """Removes all tokens."""
        ffi.lib.usher_delegate_clear_stream_tokens(self._handle)


def _key(content_id: bytes | str) -> tuple[Any, int]:
    content = ffi.as_bytes(content_id)
    if not isinstance(content, bytes):
        raise TypeError(f"a content identifier is bytes or str, not {type(content_id).__name__}")
    return ffi.c_bytes(content), len(content)


class MultiInstanceDelegate(_SSPDelegate, CommonDelegate):
    """An SSP delegate for several streams at once (MultiInstanceDelegate of the SDK's examples).

    The content tokens are in a map. The key is the `content_id` that the host gave to Player.play(), or the content
    identifier in the `asset_id` of a licence request. Each playback has its own session. Without a `content_id` the
    session starts with the first licence request. A clear stream needs no licence and no token.
    """

    _options = MultiInstanceOptions

    def __init__(
        self, context: Context, *, token_callback: TokenCallback | None = None, **options: Unpack[MultiInstanceOptions]
    ) -> None:
        """Makes a delegate. Arguments and errors are those of ``SSPDelegate``; the options are
        ``MultiInstanceOptions``."""
        self._open(context, options, hooks_of(context, self), token_callback)

    def _make(self, options: Any) -> None:
        given = self._fill(abi.SSPOptions, options, "token_callback")
        map = self._fill(abi.TokenMapOptions, options, "token_callback")
        new = ffi.lib.usher_multi_instance_delegate_new
        handle, result = self.context._handle, self._result
        _border.passed(lambda: new(handle, ctypes.byref(given), ctypes.byref(map), result), options)

    @property
    def tokens(self) -> TokenMap:
        """The map of content tokens."""
        return TokenMap(self)

    def set_stream_token(self, token: str, content_id: bytes | str) -> None:
        """Sets or replaces the token of a content identifier. It does the same as ``tokens[content_id] = token``, and
        raises the same errors."""
        self.tokens[content_id] = token

    setStreamToken = set_stream_token  # the name in the SDK's example
