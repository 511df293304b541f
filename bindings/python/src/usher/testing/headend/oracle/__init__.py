"""What tests see of the head-end and how they steer it: journal, checker, control endpoints, live feed, page."""
