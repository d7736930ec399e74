"""What the bundle starts: the memlane command, in the environment that uv makes of pyproject.toml beside it."""

from memlane.surfaces.cli import main

main()
