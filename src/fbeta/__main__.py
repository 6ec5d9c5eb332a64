"""The `fbeta` command, also as `python -m fbeta`."""

import sys


def main() -> None:
    """Run the command; Ctrl-C ends it in one line while it is still being imported, too."""
    try:
        from fbeta.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
