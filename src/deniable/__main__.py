"""`python -m deniable` is `deniable`."""

from deniable.cli.main import run

if __name__ == "__main__":
    run()
