"""Tests the parts of the package that need no libusher.so: errors, enums, licences."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import usher


def test_license_printed_showsNoKeys() -> None:
    assert "secret" not in repr(usher.License(b"secret"))


def test_error_isAlsoTheFittingBuiltin() -> None:
    assert issubclass(usher.UsherTimeoutError, TimeoutError)
    assert issubclass(usher.InvalidArgumentError, ValueError)
    assert issubclass(usher.TransportError, ConnectionError)
    assert issubclass(usher.TLSError, usher.TransportError)
    assert issubclass(usher.ReplacedError, usher.ClosedError)
    assert issubclass(usher.LimitError, usher.RefusedError)


def test_everyErrorClass_keepsItsDetail() -> None:
    from usher._errors import BY_STATUS

    for status, kind in BY_STATUS.items():
        error = kind(
            "why",
            status=status,
            origin=usher.Origin.SSM,
            operation=usher.Operation.SETUP,
            http_status=400,
            service_code=1007,
            must_stop=True,
        )
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind
        assert vars(again) == vars(error)
        assert str(again) == "why, setup at ssm, HTTP 400, code 1007"


def test_enum_ofANewerLibrary_isTaken() -> None:
    assert usher.EventType(99).name == "UNKNOWN_99"
    assert int(usher.Status(-999)) == -999


def test_usher_imported_doesNotLoadTheLibrary() -> None:
    """usher.testing works without libusher.so."""
    code = "import usher, usher.testing.headend, sys; assert 'usher._c.ffi' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "USHER_LIBRARY": "/nonexistent"},
    )


def test_library_thatIsNone_isAnImportErrorThatNamesIt(tmp_path: Any) -> None:
    wrong = tmp_path / "libusher.so"
    wrong.write_bytes(b"no library")
    code = "from usher import Context"
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "USHER_LIBRARY": str(wrong)},
    )
    assert result.returncode != 0
    assert "ImportError" in result.stderr and str(wrong) in result.stderr and "USHER_LIBRARY" in result.stderr
