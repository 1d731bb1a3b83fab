"""The pandas face of a trace: a table as a DataFrame, with names in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inspector.errors import Missing
from inspector.trace.schema import NEVER, Column
from inspector.trace.table import Array, Table

if TYPE_CHECKING:
    import pandas as pd

    from inspector.trace.trace import Trace


def to_pandas(table: Table | str, trace: Trace) -> pd.DataFrame:
    """One row per row of `table` (a table of `trace`, or the name of one), in order.

    Names are categoricals of the texts that occur, missing for none; times that never came are missing (Int64); all
    else keeps its dtype. `frame.attrs["units"]` gives the units. Raises Missing without pandas, KeyError for a table
    that the schema has not.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise Missing("pandas is not installed", str(error), "pip install 'inflight-inspector[pandas]'") from error
    rows = trace[table] if isinstance(table, str) else table
    frame: pd.DataFrame = pd.DataFrame(
        {name: _values(values, rows.schema.column(name), trace) for name, values in rows.columns.items()}
    )
    frame.attrs["units"] = {column.name: column.unit for column in rows.schema.columns if column.unit}
    return frame


def _values(values: Array, column: Column, trace: Trace) -> Array | pd.Categorical | pd.api.extensions.ExtensionArray:
    import pandas as pd

    if column.refers == "names":
        used, codes = np.unique(values, return_inverse=True)
        none = int(np.searchsorted(used, 0))  # how many of them are no name at all
        # As objects: Arrow's texts, which pandas would choose, have no room for half a surrogate pair.
        texts = pd.Index([trace.names[name] for name in used[none:].tolist()], dtype=object)
        return pd.Categorical.from_codes((codes - none).clip(-1), texts)
    if column.may_be_never:
        return pd.arrays.IntegerArray(values.copy(), values == NEVER)
    return values
