"""GPU kernels for a convolutional stage of many members at once, in Triton.

Tensors are ``(members, rows, height, width, channels)``. Batch normalisation needs sums over
all pixels: the convolution adds them up while it has its result at hand; what follows it
(normalise, leaky ReLU, 2x2 maximum) is one pass over memory, and its gradient two.

The package is imported where there is a GPU. ``TRITON_INTERPRET=1`` runs it on a CPU, slowly,
which is how it is tested.
"""

from aloof.networks._kernels.activation import activate, activate_backward, sum_gradient
from aloof.networks._kernels.axes import inside_out
from aloof.networks._kernels.filters import Filters

__all__ = ["Filters", "activate", "activate_backward", "inside_out", "sum_gradient"]
