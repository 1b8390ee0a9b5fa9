"""Plain `torch.nn.Module` networks: no loss, no labels, no trainer.

A pair of networks makes a VAE. Anything that keeps this protocol works with every
method, with ensembles, saving and scoring:

* an **encoder** maps rows ``(n, *shape)`` to a pair ``(mean, log_var)``, each
  ``(n, latent_dim)``;
* a **decoder** maps ``(n, latent_dim)`` to a reconstruction ``(n, *shape)`` (for
  ``likelihood="bernoulli"``: to logits; for ``likelihood="gaussian"``: to a pair
  ``(mean, log_var)``, each ``(n, *shape)``);
* a **factory** ``factory(shape, latent_dim)`` returns a fresh network. It is called once
  for each member, with torch's random generator set to that member's seed.

Dropout, batch normalisation and recurrent layers are fine. A row must not change another
row's result in eval mode, and the dtype must follow the input (``x.new_zeros(...)``
rather than ``torch.zeros(...)``).

For sequences (``likelihood="categorical"``) rows are integers ``(n, t)`` and the decoder
returns logits ``(n, t, classes)``; see `aloof.networks.sequence`.

A network may set the class attribute ``stackable = True`` to promise that its forward
pass is unchanged when parameters and inputs carry a leading member axis. An ensemble of
such networks is then one module with stacked parameters, the fastest way there is;
the networks here keep that promise.
"""

from aloof.networks.affine import Affine, affine_layers
from aloof.networks.conditional import ConditionalMLPDecoder, ConditionalMLPEncoder
from aloof.networks.conv import ConvDecoder, ConvEncoder, FoldedDecoder, default_filters
from aloof.networks.convolutional import (
    Convolution,
    Convolutional,
    convolutional_layers,
)
from aloof.networks.counting import count_multiplications
from aloof.networks.linear import Linear
from aloof.networks.mlp import MLPDecoder, MLPEncoder
from aloof.networks.protocol import (
    Architecture,
    NetworkFactory,
    Posterior,
    check_architecture,
)
from aloof.networks.sequence import (
    BEGIN,
    END,
    PADDING,
    UNKNOWN,
    SentenceDecoder,
    SentenceEncoder,
)

__all__ = [
    "BEGIN",
    "END",
    "PADDING",
    "UNKNOWN",
    "Affine",
    "Architecture",
    "ConditionalMLPDecoder",
    "ConditionalMLPEncoder",
    "ConvDecoder",
    "ConvEncoder",
    "Convolution",
    "Convolutional",
    "FoldedDecoder",
    "Linear",
    "MLPDecoder",
    "MLPEncoder",
    "NetworkFactory",
    "Posterior",
    "SentenceDecoder",
    "SentenceEncoder",
    "affine_layers",
    "check_architecture",
    "convolutional_layers",
    "count_multiplications",
    "default_filters",
]
