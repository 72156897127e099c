"""The command line: thin commands over the library. Rows go to stdout, words to stderr."""
