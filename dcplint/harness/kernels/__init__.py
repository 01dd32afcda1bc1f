"""The package of our own kernels, under one name wherever their files lie.

In a checkout and an editable install the files are the top-level `kernels/`, in a wheel
`dcplint/_kernels`; either way `from dcplint.harness.kernels.gqa_decode import gqa_decode` finds
them. Importing this package alone imports neither torch nor triton.
"""

from dcplint.data import data_dir

__path__ = [str(data_dir("kernels"))]
