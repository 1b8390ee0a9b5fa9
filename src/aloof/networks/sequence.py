"""Recurrent networks for sentences: from words to a code, and from a code to words.

A sentence is a row of word numbers, closed by `END` and filled up with `PADDING`. Networks read
it from their context: the encoder all of it, the decoder the words before the one it has to
find. In training both can be made to miss words (``TrainingConfig.context_dropout``) that the
loss still asks for.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from aloof.networks.linear import Linear
from aloof.networks.mlp import PosteriorHead

__all__ = [
    "BEGIN",
    "END",
    "PADDING",
    "UNKNOWN",
    "Conditioning",
    "SentenceDecoder",
    "SentenceEncoder",
    "Summary",
]

PADDING, BEGIN, END, UNKNOWN = range(4)

Summary = Literal["mean", "last"]
"""What a code is made of: the means of states and words, or the last state alone."""

Conditioning = Literal["steps", "start"]
"""When a decoder is told the code: at every step, or as the state it starts with."""

_SPREAD = 0.3  # of the numbers in a learned word vector at first, about that of GloVe's


class SentenceEncoder(nn.Module):
    """An LSTM over the words, and a linear head over a summary of the sentence.

    The summary is the means of its states and of the words, whose own vectors are shown to the
    head so that what is known of a word reaches the code without being learned again; or, as
    in Bowman et al. (2016), the last state.

    Parameters
    ----------
    vectors
        One for each word, ``(n_words, d)``. They stay as they are; rows of NaN are learned.
    latent_dim
        Size of the latent space.
    hidden
        Size of the state.
    summary
        ``"mean"`` or ``"last"``.

    Examples
    --------
    >>> encoder = SentenceEncoder(torch.zeros(10, 3), 2, hidden=4)
    >>> mean, log_var = encoder(torch.tensor([[5, 6, END, PADDING], [7, END, PADDING, 0]]))
    >>> mean.shape, log_var.shape
    (torch.Size([2, 2]), torch.Size([2, 2]))
    """

    stackable = True

    def __init__(
        self,
        vectors: Tensor,
        latent_dim: int,
        *,
        hidden: int = 256,
        summary: Summary = "mean",
    ) -> None:
        super().__init__()
        self.words = _WordVectors(vectors)
        self.layer = _LSTM(vectors.shape[1], hidden)
        self.summary = summary
        extra = vectors.shape[1] if summary == "mean" else 0
        self.head = PosteriorHead(hidden + extra, latent_dim)

    def forward(self, tokens: Tensor, *context: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance, each ``(..., n, latent_dim)``.

        Parameters
        ----------
        tokens
            Word numbers ``(..., n, t)``.
        context
            Views of the words; if there are any, the first is read in place of `tokens`.
        """
        tokens = context[0] if context else tokens
        present = (tokens != PADDING).unsqueeze(-1)
        words = self.words(tokens)
        # Padding comes last, so that no state of a word depends on it.
        states = self.layer(self.layer.gates(words))
        posterior: tuple[Tensor, Tensor] = self.head(self._sum_up(states, words, present))
        return posterior

    def _sum_up(self, states: Tensor, words: Tensor, present: Tensor) -> Tensor:
        if self.summary == "last":
            places = torch.arange(states.shape[-2], device=states.device).unsqueeze(-1)
            last = torch.where(present, places, 0).amax(-2, keepdim=True)
            return torch.take_along_dim(states, last, -2).squeeze(-2)
        seen = torch.cat([states, words], -1)
        return torch.where(present, seen, 0.0).sum(-2) / present.sum(-2).clamp(min=1)


class SentenceDecoder(nn.Module):
    """An LSTM that is told the code and the word before, and returns logits of the next word.

    Parameters
    ----------
    vectors, latent_dim, hidden
        As for `SentenceEncoder`.
    conditioning
        ``"steps"``, or ``"start"`` as in Bowman et al. (2016).
    """

    stackable = True

    def __init__(
        self,
        vectors: Tensor,
        latent_dim: int,
        *,
        hidden: int = 256,
        conditioning: Conditioning = "steps",
    ) -> None:
        super().__init__()
        self.words = _WordVectors(vectors)
        self.conditioning = conditioning
        # To the four gates of every step, or to the state and the cell before the first.
        width = 4 if conditioning == "steps" else 2
        self.code = Linear(latent_dim, width * hidden, bias=conditioning == "start")
        self.layer = _LSTM(vectors.shape[1], hidden)
        self.head = Linear(hidden, len(vectors))

    def forward(self, z: Tensor, *context: Tensor) -> Tensor:
        """Return logits ``(..., n, t, n_words)`` of the words of a sentence.

        Parameters
        ----------
        z
            Codes ``(..., n, latent_dim)``.
        context
            Views of the words, each ``(..., n, t)``. In the last one, a word is predicted from
            those before it.
        """
        tokens = context[-1]
        before = torch.cat([torch.full_like(tokens[..., :1], BEGIN), tokens[..., :-1]], -1)
        gates, told = self.layer.gates(self.words(before)), self.code(z)
        if self.conditioning == "steps":
            states = self.layer(gates + told.unsqueeze(-2))
        else:
            states = self.layer(gates, told)
        return _over_words(self.head, states)


class _WordVectors(nn.Module):
    """A vector for each word: given ones stay, the others are learned."""

    stackable = True

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        given = ~vectors.isnan().any(-1)
        learned = _SPREAD * torch.randn(vectors.shape)
        self.weight = nn.Parameter(torch.where(given[:, None], vectors, learned))
        self.register_buffer("given", given)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map ``(..., n, t)`` to ``(..., n, t, d)``."""
        weight: Tensor = self.weight
        given = self.get_buffer("given")
        if weight.dim() == 3:  # members look their words up in one long table
            members, n_words = given.shape
            first = torch.arange(0, members * n_words, n_words, device=tokens.device)
            tokens = tokens + first.view(-1, 1, 1)
            weight, given = weight.flatten(0, 1), given.flatten()
        vectors = embedding(tokens, weight)
        return torch.where(given[tokens].unsqueeze(-1), vectors.detach(), vectors)


class _LSTM(nn.Module):
    """A recurrent layer written out, so that members' states advance in one product."""

    stackable = True

    def __init__(self, n_in: int, n_hidden: int) -> None:
        super().__init__()
        self.inputs = Linear(n_in, 4 * n_hidden)
        self.state = Linear(n_hidden, 4 * n_hidden, bias=False)

    def gates(self, x: Tensor) -> Tensor:
        """Return what inputs ``(..., n, t, n_in)`` do to the gates: ``(..., n, t, 4 h)``."""
        return _over_words(self.inputs, x)

    def forward(self, gates: Tensor, start: Tensor | None = None) -> Tensor:
        """Return the state after every step, ``(..., n, t, h)``.

        `start` is the state and the cell before the first, ``(..., n, 2 h)``; None: zeros.
        """
        n_hidden = gates.shape[-1] // 4
        weight = self.state.weight.mT
        # In the dtype of the weights: a cell adds up over all steps, also in autocast.
        if start is None:
            state = cell = gates.new_zeros(*gates.shape[:-2], n_hidden, dtype=weight.dtype)
        else:
            state, cell = start.to(weight.dtype).chunk(2, -1)
        states: list[Tensor] = []
        for now in gates.unbind(-2):
            if len(states) or start is not None:
                now = now + state @ weight
            opening = torch.sigmoid(now[..., : 3 * n_hidden])
            keep, let_in, let_out = opening.chunk(3, -1)
            cell = torch.addcmul(keep * cell, let_in, torch.tanh(now[..., 3 * n_hidden :]))
            state = let_out * torch.tanh(cell)
            states.append(state)
        return torch.stack(states, -2)


def _over_words(layer: nn.Module, x: Tensor) -> Tensor:
    """Apply a layer for rows to every word of every row, ``(..., n, t, d)``."""
    out: Tensor = layer(x.flatten(-3, -2))
    return out.reshape(*x.shape[:-1], out.shape[-1])
