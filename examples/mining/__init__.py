"""Slips and near-singular stances in a data set of simulated walks."""
