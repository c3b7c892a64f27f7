"""The node from configure to cleanup: what it computes, changes of it, services, diagnostics."""
