"""The parts with which tests observe and control the head-end: journal, checker, control endpoints, live feed, page."""
