# SPDX-License-Identifier: MIT
"""python -m moongrid: the command."""
from ._command import main

main()
