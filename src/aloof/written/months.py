"""Names of months and days of the week in the languages that files are often written in."""

from __future__ import annotations

import unicodedata
from functools import cache

__all__ = ["is_weekday", "month_of"]

# English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish and Norwegian,
# Polish (also as in "of January"), Czech, Romanian, Hungarian, Turkish, Russian.
_MONTHS = (
    "January February March April May June July August September October November December",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Jänner Feber Maerz April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar marts april maj juni juli august september oktober november december",
    "januar februar mars april mai juni juli august september oktober november desember",
    "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad "
    "grudzień",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
    "listopada grudnia",
    "leden únor březen duben květen červen červenec srpen září říjen listopad prosinec",
    "ledna února března dubna května června července srpna září října listopadu prosince",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie "
    "decembrie",
    "január február március április május június július augusztus szeptember október november "
    "december",
    "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
)
# Abbreviations that are not the beginning of a name, or of the names of two months.
_SHORT = {"mrz": 3, "mrt": 3, "jne": 6, "cvn": 6, "cvc": 7, "jui": 0, "sty": 1}
_DAYS = (
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag Sonnabend",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miércoles jueves viernes sábado domingo",
    "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "segunda terça quarta quinta sexta sábado domingo",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "måndag tisdag onsdag torsdag fredag lördag söndag",
    "mandag tirsdag onsdag torsdag fredag lørdag søndag",
    "poniedziałek wtorek środa czwartek piątek sobota niedziela",
    "понедельник вторник среда четверг пятница суббота воскресенье",
)
_FEWEST_LETTERS = 3


def month_of(word: str) -> int | None:
    """Return the month that a name or its beginning means, 1 to 12; None: no month.

    Examples
    --------
    >>> month_of("März"), month_of("juil"), month_of("SEPT"), month_of("jui"), month_of("sun")
    (3, 7, 9, None, None)
    """
    return _months().get(_folded(word))


def is_weekday(word: str) -> bool:
    """Say whether a word is a day of the week, or its beginning."""
    return _folded(word) in _weekdays()


@cache
def _months() -> dict[str, int]:
    meanings: dict[str, set[int]] = {}
    whole: dict[str, int] = {}
    for names in _MONTHS:
        for month, name in enumerate(map(_folded, names.split()), start=1):
            whole[name] = month
            for length in range(_FEWEST_LETTERS, len(name) + 1):
                meanings.setdefault(name[:length], set()).add(month)
    known = {word: min(found) for word, found in meanings.items() if len(found) == 1}
    return known | whole | {word: month for word, month in _SHORT.items() if month}


@cache
def _weekdays() -> frozenset[str]:
    names = [_folded(name) for line in _DAYS for name in line.split()]
    return frozenset(name[:length] for name in names for length in range(2, len(name) + 1))


def _folded(word: str) -> str:
    """Return a word in small letters without accents."""
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))
