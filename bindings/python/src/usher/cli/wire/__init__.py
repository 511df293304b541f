"""HTTP for the commands that test a head-end: a client that times each request, a relay, and redaction."""
