"""`python -m deniable` is `deniable`."""

from deniable.cli.main import start

if __name__ == "__main__":
    start()
