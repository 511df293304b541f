"""Hypothesis strategies: settings of head-ends, faults and fault scripts. They need the package hypothesis.

The fault scripts have the form of ``FaultScript.load``, so that a failing example can be copied into a test.
"""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from usher.testing.headend.config import Rotation, TokenForm

ROUTES = ("setup", "heartbeat", "teardown", "license")

MILD = ("status", "error", "drop", "reset", "truncate", "bad_chunks", "empty_body", "non_json", "html_page")
"""The names of faults after which a correct player goes on or ends its session. None of these faults makes the player
wait for a reply, so that examples are quick."""

_LOOK_LIKE_SUCCESS = ("html_page", "non_json")


def headend_settings(*, limits: tuple[int, int] = (1, 3)) -> st.SearchStrategy[dict[str, Any]]:
    """Returns settings of ``HeadEndConfig`` that a player must cope with."""
    return st.fixed_dictionaries(
        {
            "limit": st.integers(*limits),
            "period_s": st.sampled_from([5, 10, 60]),
            "token_rotation": st.sampled_from(get_args(Rotation)),
            "token_form": st.sampled_from([form for form in get_args(TokenForm) if form != "mixed"]),
            "heartbeat_key": st.sampled_from(["heartbeat", "heartBeat"]),
            "teardown_reply": st.sampled_from(["json", "no-content", "text"]),
        }
    )


def faults(kinds: tuple[str, ...] = MILD) -> st.SearchStrategy[dict[str, Any]]:
    """Returns faults in their JSON form (``Fault.from_json``).

    Args:
        kinds: names of faults: ``status``, ``error``, and faults that need no argument except ``when``.
    """
    arguments: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "status": st.fixed_dictionaries({"status": st.sampled_from([429, 500, 502, 503, 504])}),
        "error": st.fixed_dictionaries({"code": st.sampled_from([1000, 1004, 1006, 4000])}),
        "drop": st.fixed_dictionaries({"when": st.sampled_from(["before", "after"])}),
        "reset": st.fixed_dictionaries({"when": st.sampled_from(["before", "after"])}),
    }
    return st.sampled_from(kinds).flatmap(
        lambda kind: arguments.get(kind, st.just({})).map(lambda given: {"kind": kind, **given})
    )


def fault_lines(routes: tuple[str, ...] = ROUTES, kinds: tuple[str, ...] = MILD) -> st.SearchStrategy[dict[str, Any]]:
    """Returns one line of a fault script. No fault gives a teardown a false reply with the status of a success: after
    such a reply a correct player may repeat the teardown or not, so a test could not judge the player."""

    def line(route: str) -> st.SearchStrategy[dict[str, Any]]:
        fitting = tuple(kind for kind in kinds if route != "teardown" or kind not in _LOOK_LIKE_SUCCESS)
        return st.fixed_dictionaries({"route": st.just(route), "fault": faults(fitting), "times": st.integers(1, 3)})

    return st.sampled_from(routes).flatmap(line)


def fault_scripts(
    routes: tuple[str, ...] = ROUTES, kinds: tuple[str, ...] = MILD, max_size: int = 4
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Returns whole fault scripts."""
    return st.lists(fault_lines(routes, kinds), max_size=max_size)
