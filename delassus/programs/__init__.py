"""The base of all programs: command lines, child processes, stop signals, terminals."""
