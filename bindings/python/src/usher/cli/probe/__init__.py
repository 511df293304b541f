"""``usher probe``: one playback against a head-end, step by step."""
