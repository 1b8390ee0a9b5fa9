"""Currencies and units as they are written beside numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

__all__ = ["BARE", "Unit", "find_unit", "name_unit"]


@dataclass(frozen=True)
class Unit:
    """What stands beside a number.

    Attributes
    ----------
    name
        How it is called, however it is written: "EUR" for "€".
    family
        Numbers with units of one family can be converted into each other.
    size
        How many of the family's smallest known unit it is.
    """

    name: str
    family: str
    size: float = 1.0

    @property
    def is_currency(self) -> bool:
        """Whether it is money."""
        return self.family.startswith("currency")

    @property
    def is_share(self) -> bool:
        """Whether it is a percent or the like: the number alone means something else."""
        return self.family in ("%", "‰", "ppm")


# Spellings of each currency; codes are read in any case.
_CURRENCIES = {
    "EUR": "€ euro euros",
    "USD": "$ us$ usd$ $us dollar dollars",
    "GBP": "£ pound pounds",
    "CHF": "fr. sfr. sfr fr",
    "JPY": "円",
    "CNY": "元 rmb yuan",
    "¥": "¥ ￥",
    "kr": "kr kr.",
    "SEK": "",
    "NOK": "",
    "DKK": "",
    "ISK": "",
    "PLN": "zł zl zloty",
    "CZK": "kč kc",
    "HUF": "ft",
    "RON": "lei leu",
    "BGN": "лв лв.",
    "RUB": "₽ руб руб. р.",
    "UAH": "₴ грн грн.",
    "TRY": "₺ tl",
    "INR": "₹ rs rs. ₨",
    "KRW": "₩",
    "VND": "₫",
    "THB": "฿",
    "PHP": "₱",
    "ILS": "₪",
    "NGN": "₦",
    "BRL": "r$",
    "AUD": "a$ au$",
    "CAD": "c$ ca$",
    "NZD": "nz$",
    "HKD": "hk$",
    "SGD": "s$ sg$",
    "MXN": "mx$ mex$",
    "ARS": "ar$",
    "CLP": "",
    "COP": "",
    "PEN": "s/ s/.",
    "ZAR": "",
    "AED": "",
    "SAR": "",
    "EGP": "",
    "IDR": "rp rp.",
    "MYR": "rm",
    "TWD": "nt$",
    "BTC": "₿",
}
# Units that can be converted: each family from the smallest on, with all spellings.
_FAMILIES: dict[str, dict[float, str]] = {
    "time": {
        1e-9: "ns",
        1e-6: "µs us μs",
        1e-3: "ms msec",
        1.0: "s sec secs sek sek. second seconds",
        60.0: "min mins min. minute minutes minuten",
        3600.0: "h hr hrs std std. hour hours",
        86400.0: "d day days tag tage",
    },
    "bytes": {
        1.0: "B bytes byte",
        1e3: "KB kB",
        1e6: "MB",
        1e9: "GB",
        1e12: "TB",
        1e15: "PB",
        2.0**10: "KiB",
        2.0**20: "MiB",
        2.0**30: "GiB",
        2.0**40: "TiB",
    },
    "bits a second": {
        1.0: "bit/s",
        1e3: "kbit/s kbps Kbps",
        1e6: "Mbit/s Mbps",
        1e9: "Gbit/s Gbps",
    },
    "mass": {
        1e-15: "pg",
        1e-12: "ng",
        1e-9: "µg μg mcg ug",
        1e-6: "mg",
        1e-3: "g",
        1.0: "kg",
        1e3: "t",
    },
    "amount": {
        1e-12: "pmol",
        1e-9: "nmol",
        1e-6: "µmol μmol umol",
        1e-3: "mmol",
        1.0: "mol",
    },
    "units": {1e-6: "µU μU", 1e-3: "mU", 1.0: "U", 1e3: "kU"},
    "international units": {1e-6: "µIU μIU", 1e-3: "mIU", 1.0: "IU IE", 1e3: "kIU"},
    "length": {1e-9: "nm", 1e-6: "µm μm", 1e-3: "mm", 1e-2: "cm", 1.0: "m", 1e3: "km"},
    "volume": {
        1e-15: "fl fL",
        1e-6: "µl μl µL μL",
        1e-3: "ml mL",
        1e-2: "cl",
        1e-1: "dl dL",
        1.0: "l L",
        1e2: "hl",
    },
    "power": {1e-3: "mW", 1.0: "W", 1e3: "kW", 1e6: "MW", 1e9: "GW"},
    "energy": {1.0: "Wh", 1e3: "kWh", 1e6: "MWh", 1e9: "GWh"},
    "voltage": {1e-3: "mV", 1.0: "V", 1e3: "kV"},
    "current": {1e-6: "µA μA", 1e-3: "mA", 1.0: "A"},
    "frequency": {1.0: "Hz", 1e3: "kHz", 1e6: "MHz", 1e9: "GHz"},
    "pressure": {1.0: "Pa", 1e2: "hPa mbar", 1e3: "kPa", 1e5: "bar", 1e6: "MPa"},
}
# Units that stand alone.
_SINGLE = (
    "% ‰ ppm ppb dB dBm dBA rpm U/min 1/min bpm °C ℃ °F ℉ ° Ω Ohm kΩ MΩ N kN Nm J kJ MJ kcal "
    "cal km/h m/s m/s² mph kn m² km² ha m³ cm² cm³ mm² ft in yd mi lb lbs oz gal "
    "psi mmHg lx lm cd px pt pts pcs pcs. pc stk stk. Stk Stk. Stück stück St St. ea VA kVA var"
)
_SAME = {"℃": "°C", "℉": "°F", "Ohm": "Ω", "lbs": "lb"}
_SAME |= dict.fromkeys(("stk", "stk.", "Stk.", "Stück", "stück", "St", "St."), "Stk")
_SAME |= dict.fromkeys(("pcs.", "pc"), "pcs")
# Words that multiply a number, also one with a currency.
_TIMES = {
    1e3: "k K Tsd Tsd. tsd. tys.",
    1e6: "M Mio Mio. mio mio. mln mln. million",
    1e9: "bn Bn Mrd Mrd. mrd mrd. mld billion",
}
# What a number has that has nothing beside it.
BARE = Unit("", "count")


def find_unit(before: str, after: str) -> Unit | None:
    """Return what is written around a number; None: nobody knows what the words mean.

    Parameters
    ----------
    before, after
        Text without digits; either may be empty.

    Examples
    --------
    >>> find_unit("$", "").name, find_unit("", "Mio. €")
    ('USD', Unit(name='Mio EUR', family='currency EUR', size=1000000.0))
    >>> find_unit("", "apples")
    """
    if not before and not after:
        return BARE
    word, _, rest = after.partition(" ")
    times = _times().get(word)
    if times is not None and not (before and rest):
        money = _money().get((before or rest).lower())
        if not before and not rest:
            return times
        return money and Unit(f"{times.name} {money.name}", money.family, times.size)
    if before:
        return None if after else _money().get(before.lower())
    return _money().get(after.lower()) or _units().get(after) or _ratio(after)


def name_unit(name: str) -> Unit:
    """Return the unit of this name; one that nobody knows is a family of its own."""
    return find_unit("", name) or Unit(name, f"other {name}")


def _ratio(word: str) -> Unit | None:
    """Return one unit in another, such as µmol/l, if both are known."""
    over, _, under = word.partition("/")
    top, bottom = _units().get(over), _units().get(under)
    if top is None or bottom is None:
        return None
    family = f"{top.family} in {bottom.family}"
    return Unit(f"{top.name}/{bottom.name}", family, top.size / bottom.size)


@cache
def _money() -> dict[str, Unit]:
    known = {}
    for code, spellings in _CURRENCIES.items():
        unit = Unit(code, f"currency {code}")
        for word in (code.lower(), *spellings.split()):
            known[word] = unit
    return known


@cache
def _times() -> dict[str, Unit]:
    known: dict[str, Unit] = {}
    for size, spellings in _TIMES.items():
        known |= {word: Unit(word.rstrip("."), "count", size) for word in spellings.split()}
    return known


@cache
def _units() -> dict[str, Unit]:
    known = {}
    for family, sizes in _FAMILIES.items():
        for size, spellings in sizes.items():
            first, *_ = words = spellings.split()
            for word in words:
                known[word] = Unit(first, family, size)
    for word in _SINGLE.split():
        name = _SAME.get(word, word)
        known[word] = Unit(name, name)
    return known
