"""Inputs of the nodes: messages become values with ages and faults."""
