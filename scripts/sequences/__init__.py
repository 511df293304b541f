"""The pictures of docs/concepts: scenes that really play (scenes.py), what was sent in them (messages.py), and the
drawing (picture.py). scripts/draw-sequence uses them."""
