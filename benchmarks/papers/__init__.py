"""Pages that set the papers' tables and figures beside this project's: ``make papers``."""
