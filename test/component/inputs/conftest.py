"""The fixtures of tests with nodes; see node_fixtures."""

from node_fixtures import *  # noqa: F403
