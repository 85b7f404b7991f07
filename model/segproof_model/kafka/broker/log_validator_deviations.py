# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose when it checks the batches of an append."""

from typing import NoReturn

from segproof_model.kafka.broker import log_validator
from segproof_model.language.behaviours import Behaviour, override
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class OrderErrorNamesNothing(Behaviour):
    """The error for offsets that a follower is given out of order, or below the log's end, says so
    whatever can be read of the records.
    """

    laws = ("LOG-21",)
    of_segproof = True

    class AppendAnalysis(log_validator.AppendAnalysis):
        """The analysis of an append."""

        @override
        def refuse_order(self, named: int = INT32_MAX) -> NoReturn:
            refuse(ErrorKind.OFFSET_ORDER)
