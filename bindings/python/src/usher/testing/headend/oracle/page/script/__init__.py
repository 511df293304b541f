"""The page's JavaScript: one function, whose parts are in the modules. It inserts all data as text, and never parses
data as HTML."""

from __future__ import annotations

from . import accounts, actions, connect, drawing, fault_form, faults, feed, requests, sessions, state

_PARTS = (state, feed, drawing, accounts, sessions, requests, faults, fault_form, connect, actions)
"""The parts in the order of the script: a part uses only constants of the parts before it."""

SCRIPT = '\n"use strict";\n(() => {' + "".join(part.SCRIPT for part in _PARTS) + "\nconnect();\n})();\n"
