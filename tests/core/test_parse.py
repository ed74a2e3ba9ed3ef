import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.core.errors import SpecError
from likely.core.spec import Spec
from likely.inference import MAP, Ensemble, Inference, Noise
from likely.likelihoods import Bernoulli, Likelihood, Poisson, Product, StudentT
from likely.likelihoods import Normal as NormalNoise
from likely.networks import MLP, Linear, Network
from likely.optim import SGD, Adam
from likely.priors import ElasticNet, Flat, Laplace, Normal, PerLayer, Prior


class Anything(Spec, axis="anything"):
    """An axis of this file."""


class Box(Anything):
    value: object = None
    number: float = 0.0


@pytest.mark.parametrize(
    ("text", "axis", "spec"),
    [
        ("MLP", Network, MLP()),
        ("mlp", Network, MLP()),
        (" mlp( ) ", Network, MLP()),
        ("mlp(hidden=[8, 8], activation=gelu)", Network, MLP((8, 8), "gelu")),
        ("MLP((8,), 'tanh')", Network, MLP((8,), "tanh")),
        ("mlp([8], bias=false, norm=none)", Network, MLP((8,), bias=False)),
        ("student_t", Likelihood, StudentT()),
        ("StudentT()", Likelihood, StudentT()),
        ("studentt", Likelihood, StudentT()),
        ("elastic_net(l1=0.5)", Prior, ElasticNet(0.5)),
        ("map(optimizer=adam(lr=1e-2), epochs=3)", Inference, MAP(Adam(0.01), epochs=3)),
        ("map(adam)", Inference, MAP(Adam())),
        ("map('sgd(0.5)')", Inference, MAP(SGD(0.5))),
        ("ensemble(2, by=map(sgd(1), noise=noise(weights=2)))", Inference, Ensemble(2, MAP(SGD(1), noise=Noise(0, 2)))),
        ("normal(2, biases=laplace(scale=3))", Prior, Normal(2, Laplace(3))),
        ("per_layer({'0.*': normal(2), rest: flat})", Prior, PerLayer({"0.*": Normal(2), "rest": Flat()})),
        ("per_layer({}, default=normal)", Prior, PerLayer({}, Normal())),
        ("product({'a': normal(scale=1), 'b': poisson, c: bernoulli()})", Likelihood,
         Product({"a": NormalNoise(1), "b": Poisson(), "c": Bernoulli()})),
        ("box(-3)", Anything, Box(-3)),
        ("box(-2.5e-3)", Anything, Box(-0.0025)),
        ("box(-inf)", Anything, Box(-float("inf"))),
        ("box([1, (2, [])])", Anything, Box((1, (2, ())))),
        ("box({a: {b: [true, None]}})", Anything, Box({"a": {"b": (True, None)}})),
        ("box('a\\nb\\u00e9')", Anything, Box("a\nbé")),
        ("box(mlp)", Anything, Box("mlp")),
        ("linear", Network, Linear()),
    ],
)  # fmt: skip
def test_reads(text, axis, spec):
    assert axis.parse(text) == spec
    assert axis.parse(repr(spec)) == spec


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_any_plain_value_is_read_back_as_it_prints(value):
    spec = Box(value)
    assert Anything.parse(repr(spec)) == spec
    assert hash(Anything.parse(repr(spec))) == hash(spec)


@given(st.text(max_size=200) | st.text("mlp([{}])=,'\"*:.-_ 0123456789abc\n\\", max_size=60))
def test_any_text_is_a_spec_or_a_spec_error(text):
    try:
        network = Network.parse(text)
    except SpecError:
        return
    assert isinstance(network, Network)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('false')", "mlp(hidden=__import__('os'))", "mlp(hidden=open('x'))", "os.system",
        "mlp.build", "mlp(hidden=().__class__.__bases__)", "mlp(hidden=lambda: 1)", "lambda: mlp",
        "mlp(hidden=f'{1+1}')", "mlp(hidden=1+1)", "mlp(hidden=2**9**9)", "mlp(hidden=[i for i in (1, 2)])",
        "mlp(hidden={i: 1 for i in (1, 2)})", "mlp(hidden=x[0])", "mlp(hidden=(a := 3))", "mlp(hidden=1 if 1 else 2)",
        "mlp(hidden=not 1)", "mlp(hidden=~1)", "mlp(hidden=-'a')", "mlp(hidden=-true)", "mlp(hidden=--1)",
        "mlp(hidden={1, 2})", "mlp(*[1])", "mlp(**{})", "mlp(hidden=[*a])", "mlp(hidden={**a})",
        "mlp(hidden={{}: 1})", "mlp(hidden={[1]: 1})", "mlp(hidden=b'x')", "mlp(hidden=1j)", "mlp(hidden=...)",
        "mlp()()", "mlp()[0]", "(mlp, mlp)", "mlp, mlp", "mlp; mlp", "mlp\nmlp", "mlp = 3", "import os", "await mlp",
        "(yield)", "'mlp'", "3", "None", "", " ", "mlp(", "mlp)", "mlp(hidden=)", "mlp hidden", "\0", "mlp\0",
        "mlp(\ud800)", "\ufeffmlp(1",
    ],
)  # fmt: skip
def test_nothing_but_literals_and_names_is_read(text):
    with pytest.raises(SpecError):
        Network.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4_000 + ")" * 4_000, "mlp(" * 2_000 + ")" * 2_000, "mlp(hidden=" + "[" * 4_000 + "]" * 4_000 + ")",
        "mlp(hidden=" + "-" * 9_000 + "1)", "mlp(hidden=" + "{1:" * 2_000 + "1" + "}" * 2_000 + ")", "x" * 10_000_000,
        "mlp(hidden=[" + "1," * 5_000_000 + "])", "mlp(hidden=" + "9" * 9_000 + ")", "mlp" + ".a" * 4_000,
        "1" + "+1" * 4_000, "\0" * 10_000_000,
    ],
    ids=lambda text: f"{text[:14]!r}…{len(text)}",
)  # fmt: skip
def test_text_of_any_size_is_refused_quickly(text):
    start = time.perf_counter()
    with pytest.raises(SpecError) as caught:
        Network.parse(text)
    assert time.perf_counter() - start < 1
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "axis", "message"),
    [
        ("mpl", Network, r"Unknown network 'mpl'\. Did you mean MLP\? Known: .*Linear, .*MLP"),
        ("zzz()", Network, r"Unknown network 'zzz'\. Known: .*Linear"),
        ("mlp(width=3)", Network, "MLP has no argument 'width'; it has hidden, activation"),
        ("mlp([3], hidden=[4])", Network, "MLP got 'hidden' twice"),
        ("mlp(hidden=[3], hidden=[4])", Network, "MLP got 'hidden' twice"),
        ("mlp(1,2,3,4,5,6,7,8)", Network, r"MLP takes at most 7 arguments \(hidden, .*\); got 8"),
        ("mlp(dropout=2)", Network, r"MLP\(dropout=2\): dropout must be a probability"),
        ("mlp(hidden=open('x'))", Network, r"In .*: \"open\('x'\)\" is not a literal or a known spec"),
        ("mlp(hidden={{}: 1})", Network, r"the keys of '\{\{\}: 1\}' must be words"),
        ("per_layer", Prior, "PerLayer needs a value for layers"),
        ("map(optimizer=addam(1))", Inference, "Unknown optimizer 'addam'. Did you mean Adam"),
        ("mlp(", Network, r"Cannot read 'mlp\(' as a network; write it like a call with literals"),
        ("3", Network, r"Cannot read '3' as a network; known: .*Linear"),
        ("box(number=a)", Anything, r"Box\(number='a'\): number must be a number"),
    ],
)
def test_errors_say_what_would_do(text, axis, message):
    with pytest.raises(SpecError, match=message):
        axis.parse(text)


def test_only_text_is_parsed():
    with pytest.raises(SpecError, match="A network is read from text; found 3"):
        Network.parse(3)
    with pytest.raises(SpecError, match="read from text"):
        Network.parse(b"mlp")
