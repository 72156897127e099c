"""Where data is read, joined and written: the edge of the library."""
