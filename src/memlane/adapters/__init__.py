"""memlane in the slot that an agent framework has for memory: one module for each framework.

A module here translates: it takes the framework's own types, makes calls on a bank, and answers in those types. What a
memory is, how it is found and what may be stored is not its business. The framework is imported by its module alone, so
`import memlane` needs none of them; an extra for each brings it.
"""

from __future__ import annotations


def missing(adapter: str, extra: str, package: str) -> ImportError:
    """The error for an adapter whose framework is not installed: which extra and which package bring it."""
    return ImportError(
        f"memlane.adapters.{adapter} needs {package}, which is not installed here. "
        f'Install memlane with its extra "{extra}", or the package alone: pip install {package}'
    )
