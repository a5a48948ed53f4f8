"""The one error of this package.

ValueError
└── KernelError    an argument breaks a kernel's contract, or a setting of this package is not understood
"""


class KernelError(ValueError):
    """An argument was refused; the message names it, its value and what is expected."""
