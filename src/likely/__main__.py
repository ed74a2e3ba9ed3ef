"""`python -m likely` is the command `likely`."""

from likely.cli import main

if __name__ == "__main__":
    main()
