"""Receives requests, applies faults to them and sends the replies."""
