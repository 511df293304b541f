"""Load tests: a Locust user that plays with libusher, and the figures of a run. ``usher load`` runs them."""
