"""Which traces of a store are to be built together: those of one session, those that links join, and those that
building told may belong together (`traces.ties`).

Such a company may be larger than need be; what it gives is the same. Companies are a table of the database, so that any
number of traces can be planned.
"""

from array import array

import duckdb

from evalagent.adapters.arrow import arrow
from evalagent.adapters.trace_store import one, temporary_table
from evalagent.traces.strands import WINDOW_NS, root_of

_SESSIONS = """
SELECT t.no, first(t.no) OVER (PARTITION BY session ORDER BY t.no) AS root
FROM said JOIN units t USING (trace_id)
QUALIFY count(*) OVER (PARTITION BY session) > 1 AND t.no <> root
"""
_LINKS = """
SELECT DISTINCT here.no, there.no
FROM (SELECT DISTINCT trace_id, unnest(linked) AS other FROM spans WHERE linked IS NOT NULL) l
JOIN units here ON here.trace_id = l.trace_id JOIN units there ON there.trace_id = l.other
"""
# what is told by its content joins only where one trace has it; an id always does
_LOST = f"""
SELECT DISTINCT here.no, there.no
FROM (SELECT *, count(*) OVER (PARTITION BY service, key) AS times FROM {{ties}} WHERE role = 'ran') r
JOIN {{ties}} a ON a.role = 'asked' AND a.service = r.service AND a.key = r.key AND a.trace_id <> r.trace_id
    AND abs(a.start_ns::HUGEINT - r.start_ns::HUGEINT) <= {WINDOW_NS}
JOIN units here ON here.trace_id = r.trace_id JOIN units there ON there.trace_id = a.trace_id
WHERE r.times = 1 OR r.key LIKE 'i%'
"""  # noqa: S608
_CONTINUED = f"""
SELECT DISTINCT here.no, there.no
FROM (
    SELECT service, key, min(trace_id) AS trace_id, min(start_ns) AS start_ns FROM {{ties}} WHERE role = 'made'
    GROUP BY service, key HAVING count(DISTINCT trace_id) = 1
) m
JOIN {{ties}} g ON g.role = 'given' AND g.service = m.service AND g.key = m.key AND g.trace_id <> m.trace_id
    AND g.start_ns::HUGEINT - m.start_ns::HUGEINT <= {WINDOW_NS}
JOIN units here ON here.trace_id = m.trace_id JOIN units there ON there.trace_id = g.trace_id
"""  # noqa: S608
_ECHOES = """
SELECT DISTINCT here.no, there.no
FROM {ties} l JOIN {ties} c ON l.role = 'lone' AND c.role IN ('call', 'lone')
    AND c.service = l.service AND c.key = l.key
    AND c.trace_id <> l.trace_id AND c.scope <> l.scope AND c.start_ns <= l.start_ns AND l.end_ns <= c.end_ns
JOIN units here ON here.trace_id = l.trace_id JOIN units there ON there.trace_id = c.trace_id
"""
_COMPANIES = """
CREATE OR REPLACE TEMP TABLE companies AS
WITH grouped AS (SELECT u.*, coalesce(p.root, u.no) AS root FROM units u LEFT JOIN pairs p USING (no)),
sized AS (
    SELECT *, sum(spans) OVER (PARTITION BY root) > $1 AND count(*) OVER (PARTITION BY root) > 1 AS cut,
        (sum(spans) OVER (PARTITION BY root ORDER BY no) - spans) // $1 AS parts_before
    FROM grouped
),
parted AS (SELECT *, CASE WHEN cut THEN parts_before ELSE 0 END AS part FROM sized),
named AS (
    SELECT *, min(no) OVER (PARTITION BY root, part) AS company, count(*) OVER (PARTITION BY root, part) AS members
    FROM parted
),
signed AS (
    SELECT company, md5(string_agg(trace_id, ',' ORDER BY trace_id) || if(bool_or(cut), '+', '')) AS sign
    FROM named WHERE members > 1 OR cut GROUP BY company
)
SELECT no, trace_id, spans, repeated, low, high, company, cut, sign FROM named LEFT JOIN signed USING (company)
"""


def number_traces(connection: duckdb.DuckDBPyConnection) -> int:
    """Make the temporary table `units`: a row per trace, numbered by start, then id. How many there are."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE units AS"
        " SELECT row_number() OVER (ORDER BY min(start_ns), trace_id) - 1 AS no, trace_id, count(*) AS spans,"
        " sum(copies - 1)::BIGINT AS repeated, min(rowid) AS low, max(rowid) AS high FROM spans GROUP BY trace_id"
    )
    return int(one(connection, "SELECT count(*) FROM units"))


def join_traces(connection: duckdb.DuckDBPyConnection, ties: str, most: int) -> None:
    """Make the temporary table `companies` (trace_id, company, sign, cut, ...) from `units`, `said` and the ties.

    `said` has rows of trace_id and session. `company` is the number of a company's first trace; `sign` a hash of its
    members, NULL for a trace alone. A company of more than `most` spans is cut by time, and `cut` is then true.
    """
    pa = arrow()
    size = one(connection, "SELECT count(*) FROM units")
    parents = array("q", range(size))
    for query in (_SESSIONS, _LINKS, *(told.format(ties=ties) for told in (_LOST, _CONTINUED, _ECHOES))):
        found = connection.execute(query)
        while rows := found.fetchmany(10_000):
            for here, there in rows:
                _join(parents, here, there)
    joined = [(no, root) for no in range(size) if (root := root_of(parents, no)) != no]
    pairs = [*joined, *((root, root) for root in sorted({root for _, root in joined}))]
    numbers, roots = pa.array([no for no, _ in pairs], pa.int64()), pa.array([root for _, root in pairs], pa.int64())
    temporary_table(connection, "pairs", pa.table({"no": numbers, "root": roots}))
    connection.execute(_COMPANIES, [most])


def _join(parents: "array[int]", here: int, there: int) -> None:
    here, there = root_of(parents, here), root_of(parents, there)
    if here != there:
        parents[max(here, there)] = min(here, there)
