import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import likely
from likely.core.errors import SpecError
from likely.core.spec import Spec, as_spec, axes, refuse_namesake, registered, transient
from likely.inference import MAP, Checkpoint, Ensemble, Inference, Noise
from likely.likelihoods import Product
from likely.networks import MLP, Linear, Network
from likely.optim import SGD, Adam, Optimizer
from likely.priors import ElasticNet, Flat, Laplace, Normal, PerLayer, Prior

for room in likely.__dir__():
    getattr(likely, room)


def _example(cls):
    return Checkpoint("run.ckpt") if cls is Checkpoint else cls.example()


EVERY = [
    (axis, _example(cls))
    for axis, base in axes().items()
    if base.__module__.startswith("likely.") and base.__module__ != "likely.core.spec"
    for cls in registered(axis).values()
    if cls.__module__.startswith("likely.")
]
IDS = [f"{axis}.{type(spec).__name__}" for axis, spec in EVERY]

every_spec = pytest.mark.parametrize(("axis", "spec"), EVERY, ids=IDS)


class Probe(Spec, axis="probe"):
    """An axis of this file."""


class Gauge(Probe):
    level: float = 0.5
    count: int = 3
    sizes: tuple[int, ...] = (1, 2)
    name: str | None = None
    wide: bool = False
    part: Prior | None = None
    table: object = None
    note: object = transient()


def test_every_axis_has_specs():
    assert {axis for axis, _ in EVERY} >= {
        "likelihood",
        "network",
        "prior",
        "inference",
        "optimizer",
        "schedule",
        "noise",
    }
    assert len(EVERY) > 40


# --- a value ----------------------------------------------------------------------------------------------------
@every_spec
def test_cannot_change(axis, spec):
    name = next(iter(spec.get_params(deep=False)), "anything")
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(spec, name, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del spec.anything


@every_spec
def test_is_equal_to_a_copy_of_itself_and_hashes_alike(axis, spec):
    again = type(spec)(**spec.get_params(deep=False))
    assert again == spec
    assert hash(again) == hash(spec)
    assert len({again, spec}) == 1
    assert spec != 1
    assert spec not in [other for kind, other in EVERY if type(other) is not type(spec)]


@every_spec
def test_prints_as_the_call_that_makes_it(axis, spec):
    assert axes()[axis].parse(repr(spec)) == spec
    assert axes()[axis].parse(repr(spec).lower()) == spec
    names = {cls.__name__: cls for name in axes() for cls in registered(name).values()}
    names |= registered(axis)  # Normal, Laplace and others are names on more than one axis
    assert eval(repr(spec), names) == spec


@every_spec
def test_goes_to_json_and_back(axis, spec):
    text = json.dumps(spec.to_json(), allow_nan=False)
    assert Spec.from_json(json.loads(text)) == spec
    assert as_spec(json.loads(text), axes()[axis], "argument") == spec


@every_spec
@pytest.mark.parametrize("copies", [copy.copy, copy.deepcopy, clone, Spec.replace, Spec.__call__])
def test_copies_are_equal(axis, spec, copies):
    assert copies(spec) == spec
    assert type(copies(spec)) is type(spec)


@every_spec
def test_travels_to_other_processes(axis, spec):
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    assert hash(again) == hash(spec)
    assert repr(again) == repr(spec)


def test_order_of_a_dict_matters_as_the_first_pattern_wins():
    one, other = Normal(), Laplace()
    first, second = PerLayer({"a": one, "*": other}), PerLayer({"*": other, "a": one})
    assert first != second
    assert len({first, second, PerLayer({"a": one, "*": other})}) == 2


def test_defaults_are_not_printed_and_other_types_are():
    assert repr(Gauge()) == "Gauge()"
    assert repr(Gauge(level=1)) == "Gauge(level=1)"
    assert repr(Gauge(level=1.0, count=3)) == "Gauge(level=1.0)"
    assert repr(Gauge(name="it's", part=Normal(2.0))) == 'Gauge(name="it\'s", part=Normal(scale=2.0))'


def test_transient_fields_stay_out_of_files_and_comparisons():
    assert Gauge(note=print) == Gauge()
    assert hash(Gauge(note=print)) == hash(Gauge())
    assert Spec.from_json(Gauge(note=print).to_json()) == Gauge()
    assert MAP(callbacks=(print,), checkpoint="a", augment=abs).to_json() == MAP().to_json()


# --- plain values -----------------------------------------------------------------------------------------------
def test_lists_dicts_and_numpy_numbers_become_plain():
    made = Gauge(np.float32(0.5), np.int64(3), [1, 2], np.str_("x"), np.bool_(True), table={"a": [np.float64(1.0), {}]})
    assert made == Gauge(0.5, 3, (1, 2), "x", True, table={"a": (1.0, {})})
    values = [made.level, made.count, made.sizes, made.name, made.wide, made.table["a"][0]]
    assert [type(value) for value in values] == [float, int, tuple, str, bool, float]
    assert type(MLP(hidden=[np.int32(4), 8]).hidden[0]) is int
    assert {made}


# --- changes ----------------------------------------------------------------------------------------------------
def test_replace_reaches_into_specs_inside():
    spec = Ensemble(2, by=MAP(Adam(0.1), epochs=5))
    changed = spec.replace(members=3, by__epochs=7, by__optimizer__lr=0.2)
    assert changed == Ensemble(3, by=MAP(Adam(0.2), epochs=7))
    assert spec == Ensemble(2, by=MAP(Adam(0.1), epochs=5))
    assert spec(members=4).members == 4
    assert MAP()(optimizer=SGD(), optimizer__lr=0.3) == MAP(SGD(0.3))
    assert MAP()(optimizer="sgd", optimizer__lr=0.3) == MAP(SGD(0.3))


def test_replace_names_what_is_wrong():
    with pytest.raises(SpecError, match="MLP has no argument 'width'; it has hidden, activation"):
        MLP().replace(width=3)
    with pytest.raises(SpecError, match="MAP has no argument 'optimiser'"):
        MAP().replace(optimiser__lr=3)
    with pytest.raises(SpecError, match=r"MLP\(hidden=\(64, 64\)\) is not a spec, so hidden__size is not a parameter"):
        MLP().replace(hidden__size=3)
    with pytest.raises(SpecError, match=r"MLP\(dropout=2\): dropout must be"):
        MLP().replace(dropout=2)
    with pytest.raises(SpecError, match=r"Flat has no argument 'scale'; it has none"):
        Flat().replace(scale=1)


def test_get_params_lists_the_arguments_inside_too():
    params = Ensemble(2, by=MAP(SGD(0.1))).get_params()
    assert params["by__optimizer__lr"] == 0.1
    assert params["by__optimizer"] == SGD(0.1)
    assert set(Ensemble().get_params(deep=False)) == {"members", "by", "weights"}
    for name, value in params.items():
        assert Ensemble(2, by=MAP(SGD(0.1))).replace(**{name: value}) == Ensemble(2, by=MAP(SGD(0.1)))


# --- errors -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Gauge(level="high"), r"Gauge\(level='high'\): level must be a number\."),
        (lambda: Gauge(level=True), r"Gauge\(level=True\): level must be a number\."),
        (lambda: Gauge(count=2.5), r"Gauge\(count=2\.5\): count must be an integer\."),
        (lambda: Gauge(name=3), r"Gauge\(name=3\): name must be text or None\."),
        (lambda: Gauge(wide=1), r"Gauge\(wide=1\): wide must be True or False\."),
        (lambda: Gauge(part=MLP()), r"Gauge\(part=MLP\(\)\): part must be a prior spec or None\."),
        (lambda: Normal(scale="wide"), r"Normal\(scale='wide'\): scale must be a number\."),
        (lambda: Normal(scale=-1), r"Normal\(scale=-1\): scale must be a positive number"),
        (lambda: MAP(tol="tight"), r"MAP\(tol='tight'\): tol must be a number or None\."),
        (lambda: MAP(epochs=0), r"MAP\(epochs=0\): epochs must be a positive integer"),
        (lambda: MAP(optimizer=3), r"optimizer must be one of the optimizer specs \(AdaGrad, Adam.*found 3\."),
        (lambda: MAP(optimizer=Adam), r"optimizer=Adam is a class; write optimizer=Adam\(\)\."),
        (lambda: MAP(optimizer="addam"), r"Unknown optimizer 'addam'\. Did you mean Adam\? Known: AdaGrad, Adam,"),
        (lambda: MLP(hidden="x" * 500), r"MLP\(hidden='x{50,60}…\): hidden must be a tuple"),
        (lambda: Product({"spec": Flat()}), r"Product\(parts=\{'spec': Flat\(\)\}\)"),
    ],
)
def test_errors_name_the_owner_the_argument_and_what_was_found(make, text):
    with pytest.raises(SpecError, match=text):
        make()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, "A spec in JSON looks like .* found 3"),
        ({}, "A spec in JSON looks like"),
        ({"spec": 3}, "A spec in JSON looks like"),
        ({"spec": "netwrk.MLP"}, "Unknown axis 'netwrk' in spec 'netwrk.MLP'; known: .*network"),
        ({"spec": "network.MPL"}, "Unknown network 'MPL'. Did you mean MLP"),
        ({"spec": "network._Module"}, "Unknown network '_Module'"),
        ({"spec": "network.MLP", "width": 3}, "MLP has no argument 'width'; it has hidden"),
        ({"spec": "network.MLP", "hidden": "wide"}, r"MLP\(hidden='wide'\)"),
        ({"spec": "prior.PerLayer"}, "PerLayer needs a value for layers"),
        ({"spec": "prior.PerLayer", "layers": {"*": 3}}, r"layers\['\*'\] must be one of the prior specs"),
    ],
)
def test_json_that_is_no_spec_is_refused(data, text):
    with pytest.raises(SpecError, match=text):
        Spec.from_json(data)


def test_what_json_cannot_hold_is_refused_not_changed():
    with pytest.raises(SpecError, match=r"Gauge\(table=…\) holds a ndarray, which cannot be written"):
        Gauge(table=np.ones(2)).to_json()
    with pytest.raises(SpecError, match="keys cannot be written"):
        Gauge(table={1: 2}).to_json()
    with pytest.raises(SpecError, match="keys cannot be written"):
        Gauge(table={"spec": "prior.Flat"}).to_json()
    assert Spec.from_json(PerLayer({"spec": Normal()}).to_json()) == PerLayer({"spec": Normal()})


def test_infinities_survive_json_and_text():
    spec = Gauge(level=-math.inf)
    assert Spec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert Probe.parse(repr(spec)) == spec


# --- the registry -----------------------------------------------------------------------------------------------
def test_defining_a_spec_registers_it():
    assert registered(Probe) == registered("probe") == {"Gauge": Gauge}
    assert list(registered(Prior))[:2] == ["ElasticNet", "Flat"]
    assert axes()["probe"] is Probe
    with pytest.raises(SpecError, match=r"Unknown axis 'colours'; known: .*prior"):
        registered("colours")


def test_an_axis_that_nothing_extends_is_its_own_spec():
    assert registered(Noise) == {"Noise": Noise}
    assert Spec.from_json(MAP(noise=0.1).to_json()) == MAP(noise=Noise(inputs=0.1))


def test_a_name_of_likely_cannot_be_taken():
    with pytest.raises(SpecError, match="Likely has a prior named Normal; give your class another name"):
        type("Normal", (Prior,), {"__module__": "mine"})
    assert registered(Prior)["Normal"] is Normal
    refuse_namesake(Gauge, Gauge, "probe")


@pytest.mark.parametrize(
    ("value", "axis", "expected"),
    [
        (Adam(0.1), Optimizer, Adam(0.1)),
        ("adam(0.1)", Optimizer, Adam(0.1)),
        ({"spec": "optimizer.Adam", "lr": 0.1}, Optimizer, Adam(0.1)),
        ("map(sgd(1))", Inference, MAP(SGD(1))),
        ("linear", Network, Linear()),
        ("elastic_net(0, 2)", Prior, ElasticNet(0, 2)),
    ],
)
def test_as_spec_takes_specs_text_and_json(value, axis, expected):
    assert as_spec(value, axis, "argument") == expected


def test_as_spec_refuses_specs_of_other_axes():
    with pytest.raises(SpecError, match=r"prior must be one of the prior specs .* found the network MLP\(\)"):
        as_spec(MLP(), Prior, "prior")
    with pytest.raises(SpecError, match="prior must be one of"):
        as_spec({"spec": "network.MLP"}, Prior, "prior")
