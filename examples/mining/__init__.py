"""Slips and the worst conditioned stances in a data set of simulated walks."""
