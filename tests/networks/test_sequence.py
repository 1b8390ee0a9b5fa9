"""The sentence networks: stacked as alone, blind to padding, and to words to come."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy

from aloof.networks import BEGIN, END, Architecture, SentenceDecoder, SentenceEncoder
from aloof.objectives import categorical
from aloof.vae import Ensemble

CPU = torch.device("cpu")
FORMS = [("mean", "steps"), ("last", "start")]  # ours, and that of Bowman et al.
both_forms = pytest.mark.parametrize("form", FORMS, ids="-".join)
LATENT, HIDDEN, N_WORDS = 3, 5, 12


def vectors() -> torch.Tensor:
    """Vectors of all words but the marks and the last two."""
    generator = torch.Generator().manual_seed(0)
    given = torch.randn(N_WORDS, 4, generator=generator)
    given[:4] = given[-2:] = torch.nan
    return given


def sentences(members: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, N_WORDS, (members, 6, 7), generator=generator)
    for row, length in enumerate((7, 6, 4, 3, 2, 1)):
        tokens[:, row, length - 1] = END
        tokens[:, row, length:] = 0
    return tokens


def build(engine: str, form: tuple[str, str] = FORMS[0], members: int = 3) -> Ensemble:
    summary, conditioning = form
    networks = Architecture(
        partial(SentenceEncoder, vectors(), LATENT, hidden=HIDDEN, summary=summary),
        partial(SentenceDecoder, vectors(), LATENT, hidden=HIDDEN, conditioning=conditioning),
        LATENT,
    )
    return Ensemble.build(
        networks,
        list(range(members)),
        [sentences(members)[0]] * 3,
        device=CPU,
        dtype=torch.float64,
        engine=engine,  # type: ignore[arg-type]
    )


@both_forms
def test_stacked_networks_are_the_single_ones_side_by_side(form: tuple[str, str]) -> None:
    tokens, outcome = sentences(), {}
    for engine in ("stacked", "loop"):
        ensemble = build(engine, form)
        mean, log_var = ensemble.encode([tokens, tokens, tokens])
        logits = ensemble.decoder(mean + log_var, tokens, tokens)
        leaves = [*ensemble.encoder.parameters.values(), *ensemble.decoder.parameters.values()]
        gradients = torch.autograd.grad(logits.square().sum(), leaves)
        outcome[engine] = [mean, log_var, logits, *gradients]
    assert build("auto", form).encoder.engine == "stacked"
    for left, right in zip(outcome["stacked"], outcome["loop"], strict=True):
        torch.testing.assert_close(left, right)


def reference_of(layer: torch.nn.Module) -> torch.nn.LSTM:
    """Return torch's LSTM with the weights of ours."""
    with torch.random.fork_rng():
        reference = torch.nn.LSTM(4, HIDDEN, batch_first=True, dtype=torch.float64)
    # Ours are forget, input, output and cell; torch's input, forget, cell and output.
    order = [1, 0, 3, 2]
    with torch.no_grad():
        for name, source in (("weight_ih_l0", "inputs"), ("weight_hh_l0", "state")):
            parts = layer.get_submodule(source).weight.chunk(4)
            getattr(reference, name).copy_(torch.cat([parts[i] for i in order]))
        parts = layer.get_submodule("inputs").bias.chunk(4)
        reference.bias_ih_l0.copy_(torch.cat([parts[i] for i in order]))
        reference.bias_hh_l0.zero_()
    return reference


def test_the_layer_is_an_lstm() -> None:
    with torch.random.fork_rng():
        encoder = SentenceEncoder(vectors(), LATENT, hidden=HIDDEN).double()
    x = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():
        expected, _ = reference_of(encoder.layer)(x)
        torch.testing.assert_close(encoder.layer(encoder.layer.gates(x)), expected)


@torch.no_grad()
def test_the_other_form_is_the_network_of_bowman_et_al() -> None:
    """The code is made of the state after the end mark, and is the state to start with."""
    tokens = sentences()[0]
    with torch.random.fork_rng():
        encoder = SentenceEncoder(vectors(), LATENT, hidden=HIDDEN, summary="last").double()
        decoder = SentenceDecoder(vectors(), LATENT, hidden=HIDDEN, conditioning="start")
    decoder = decoder.double()
    lengths = (tokens != 0).sum(-1)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        encoder.words(tokens), lengths, batch_first=True
    )
    _, (last, _) = reference_of(encoder.layer)(packed)
    for found, expected in zip(encoder(tokens), encoder.head(last[0]), strict=True):
        torch.testing.assert_close(found, expected)

    z = torch.randn(6, LATENT, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    state, cell = decoder.code(z).chunk(2, -1)
    before = torch.cat([torch.full_like(tokens[:, :1], BEGIN), tokens[:, :-1]], -1)
    start = (state[None].contiguous(), cell[None].contiguous())
    states, _ = reference_of(decoder.layer)(decoder.words(before), start)
    torch.testing.assert_close(decoder(z, tokens), decoder.head(states))


@both_forms
def test_padding_changes_neither_codes_nor_words(form: tuple[str, str]) -> None:
    ensemble, tokens = build("stacked", form), sentences()
    longer = torch.cat([tokens, torch.zeros(3, 6, 9, dtype=torch.int64)], -1)
    for short, long in zip(ensemble.encode([tokens]), ensemble.encode([longer]), strict=True):
        torch.testing.assert_close(short, long, rtol=0, atol=1e-14)
    z = torch.ones(3, 6, LATENT, dtype=torch.float64)
    torch.testing.assert_close(
        ensemble.decoder(z, tokens), ensemble.decoder(z, longer)[..., :7, :], rtol=0, atol=1e-14
    )


@both_forms
def test_a_word_is_predicted_from_those_before_it(form: tuple[str, str]) -> None:
    ensemble, tokens = build("stacked", form), sentences()
    z = torch.ones(3, 6, LATENT, dtype=torch.float64)
    changed = tokens.clone()
    changed[..., 3] = 5
    before, after = ensemble.decoder(z, tokens), ensemble.decoder(z, changed)
    assert torch.equal(before[..., :4, :], after[..., :4, :])
    assert not torch.equal(before[..., 4, :], after[..., 4, :])
    other = ensemble.decoder(z + 1, tokens)
    assert (before != other).any(-1).all()  # the code reaches every step


def test_given_vectors_stay_and_others_are_learned() -> None:
    ensemble, tokens = build("stacked"), sentences()
    mean, _ = ensemble.encode([tokens])
    name = "words.weight"
    (gradient,) = torch.autograd.grad(mean.sum(), [ensemble.encoder.parameters[name]])
    given = ~vectors().isnan().any(-1)
    assert (gradient[:, given] == 0).all()
    assert (gradient[:, END] != 0).any(-1).all()
    weight = ensemble.encoder.parameters[name]
    assert torch.equal(weight[0, given], vectors()[given].double())
    assert not torch.equal(weight[0, BEGIN], weight[1, BEGIN])


@both_forms
def test_an_empty_sentence_has_a_code(form: tuple[str, str]) -> None:
    mean, log_var = build("stacked", form).encode([torch.zeros(3, 1, 7, dtype=torch.int64)])
    assert mean.isfinite().all()
    assert log_var.isfinite().all()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_likelihood_is_the_cross_entropy_of_what_is_there(reduction: str) -> None:
    tokens = sentences()
    logits = torch.randn(
        *tokens.shape, N_WORDS, generator=torch.Generator().manual_seed(3), dtype=torch.float64
    )
    found = categorical(tokens, logits, reduction=reduction, mask=tokens != 0)
    for member in range(3):
        for row in range(6):
            expected = cross_entropy(
                logits[member, row], tokens[member, row], reduction=reduction, ignore_index=0
            )
            torch.testing.assert_close(found[member, row], -expected)
