"""Inputs of the nodes: messages are checked and become numbers for the kernel."""
