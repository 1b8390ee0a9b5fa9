"""Figures in the documents, tied to the records that they come from.

A marker, an HTML comment that nobody sees on the page, says which records a figure is of;
`check` computes the figure again and says where the two differ. For the documents of this
repository ``python -m aloof.bench.claims`` does it, and ``--write`` puts in what the records
say.

A marker stands before a sentence, and covers what follows up to the end of its paragraph, its
list item, its block of output, or the next marker. It names one figure after the other, with a
semicolon between, for every number with a decimal point; ``-`` is a number that is no result::

    <!-- figures: odds-complete method=dp setting=ours mean-over=dataset; method=ssad -->
    The mean AUROC is 94.8 for DP-VAE and 94.0 for SSAD.

Or it stands before a table. What names a row, and a column, are fields of the records::

    <!-- figures: images-{dataset} row=dataset,method column=gamma_l auroc% paper -->
    |               | .01         | .05         |
    |---------------|-------------|-------------|
    | MNIST, DP-VAE | 98.5 (97.0) | 99.0 (97.5) |

Where columns are unlike each other, each is described, in the manner of the table::

    <!-- figures: demo.json row=method | - | auroc% std | average_precision% std -->

The words of a marker, each figure with those of the one before it unless it has its own:

=====================  =====================================================================
``images-mnist``       first of all: a folder or a file of ``results/``; later ``from=``
``method=dp``          records with this value; names may be as people say them (DP-VAE),
                       ``*`` is every value, ``labels=0.05+5`` both of them,
                       ``sampler={method},_means`` made of another
``auroc%``             what of them, in percent; ``seconds/60``: in other units; else auroc%
``found.-1``           the last of a list, ``found.0`` the first
``std``                of the word before: ``std``, ``n``, ``min``, ``max``, ``sum``, ``low``
                       and ``high``, the ends of the 95 % interval; without it the mean
``paper``              the paper's figure in that place, and ``std`` after it
``mean-over=dataset``  the mean of the means of each data set
``records=10``         so many records there must be
``less``, ``per``      the difference to, or the ratio over, what the next words change
``against``            the p-value of the paired t-test against it
=====================  =====================================================================

A row whose name ends with ``(ours)`` or ``(paper)`` is of that setting, and one that begins
with ``published,`` has the paper's figures.

``<!-- no figures: settings -->`` says that the numbers of a paragraph or table are no results,
and what they are. Numbers in code, and after the name of a program, need no marker.
"""

from aloof.bench.claims.documents import Finding, check, corrected, documents, figures
from aloof.bench.claims.evidence import Evidence, Query

__all__ = ["Evidence", "Finding", "Query", "check", "corrected", "documents", "figures"]
