-- The trace store: every span that was ever loaded, and the steps, edges and findings that were built from them.
-- Times are nanoseconds since the epoch; NULL means not known and never 0. Secrets are masked in every column.
-- Uniqueness is held by the loader under the store's lock: an index on random ids would cost more than the load.

CREATE TABLE IF NOT EXISTS inputs (
    number      BIGINT,             -- 1, 2, ... in the order of loading
    identity    VARCHAR,            -- hash of the bytes, the format asked for and the patterns of secrets
    name        VARCHAR,            -- the file's name as given
    bytes       BIGINT,             -- as given, before unpacking
    format      VARCHAR,            -- the shapes that were found in it, joined by +
    lines       BIGINT,             -- lines that are not blank, or requests of a protobuf file
    spans       BIGINT,             -- spans in it, those that came again included
    log_records BIGINT,
    rejected    STRUCT(line BIGINT, reason VARCHAR)[]   -- pieces that could not be read; line 0 is the whole file
);
COMMENT ON TABLE inputs IS 'One row per file that was loaded';

CREATE TABLE IF NOT EXISTS spans (
    trace_id VARCHAR, span_id VARCHAR, parent_id VARCHAR,
    name VARCHAR, scope VARCHAR, scope_version VARCHAR,
    start_ns BIGINT,
    end_ns BIGINT,                  -- NULL: it never ended
    status VARCHAR,                 -- unset, ok, error
    session VARCHAR,                -- what it says the session or conversation is, where it says so
    service VARCHAR,                -- service.name of its resource
    linked VARCHAR[],               -- other traces that it links to; NULL for none
    said INTEGER,                   -- attributes, events and links: of two spans with one id the fuller is kept
    copies BIGINT,                  -- how often it came; once is 1
    input BIGINT,                   -- number of the input that brought it first, or brought it fuller
    resource JSON USING COMPRESSION zstd,
    payload JSON USING COMPRESSION zstd     -- attributes, events, links and whatever else the span holds
);
COMMENT ON TABLE spans IS 'Spans as they came, each trace and span id once';

CREATE TABLE IF NOT EXISTS log_records (
    trace_id VARCHAR,               -- empty: it names no trace
    span_id VARCHAR, time_ns BIGINT, event_name VARCHAR,
    digest VARCHAR,                 -- of the whole record: the same record is kept once
    copies BIGINT, input BIGINT,
    payload JSON USING COMPRESSION zstd     -- body and attributes
);
COMMENT ON TABLE log_records IS 'OpenTelemetry log records as they came';

CREATE TABLE IF NOT EXISTS stale (trace_id VARCHAR);
COMMENT ON TABLE stale IS 'Traces to build: new, or changed since they were built';

CREATE TABLE IF NOT EXISTS traces (
    trace_id VARCHAR, start_ns BIGINT, end_ns BIGINT, session VARCHAR,
    task VARCHAR,                   -- what the user asked
    answer VARCHAR,                 -- the final output
    quality DOUBLE,                 -- how far the trace can be trusted, 0 to 1
    spans BIGINT, steps BIGINT, edges BIGINT, containers BIGINT, ignored BIGINT,
    duplicates BIGINT,              -- spans that came again
    input_tokens BIGINT, output_tokens BIGINT,  -- of the steps that say so; NULL where none does
    cost_usd DOUBLE,
    resource JSON,
    company VARCHAR                 -- hash of the traces that it was built together with; NULL: alone
);
COMMENT ON TABLE traces IS 'One row per trace that was built';

CREATE TABLE IF NOT EXISTS steps (
    trace_id VARCHAR,
    step_id VARCHAR,                -- the span that names it; requesting span + # + call id where there is no span
    position INTEGER,               -- 0, 1, ... in the order of the trace, parents first
    span_ids VARCHAR[], kind VARCHAR, name VARCHAR, agent VARCHAR, aspect VARCHAR,
    start_ns BIGINT, end_ns BIGINT,
    error VARCHAR,                  -- NULL: none
    input_tokens BIGINT, output_tokens BIGINT, cost_usd DOUBLE,
    model VARCHAR, executed BOOLEAN, virtual BOOLEAN,
    input JSON USING COMPRESSION zstd, output JSON USING COMPRESSION zstd
);
COMMENT ON TABLE steps IS 'One thing the agent did';

CREATE TABLE IF NOT EXISTS edges (
    trace_id VARCHAR,
    child VARCHAR, parent VARCHAR,  -- step ids: child depends on parent
    parent_trace_id VARCHAR,        -- the parent's trace, mostly the same
    via VARCHAR,                    -- call, data, link, handoff, retry, order
    confidence DOUBLE               -- 0 to 1
);
COMMENT ON TABLE edges IS 'What depended on what';

CREATE TABLE IF NOT EXISTS findings (
    trace_id VARCHAR, number INTEGER,   -- 0, 1, ... within the trace
    step_id VARCHAR, code VARCHAR, severity VARCHAR, message VARCHAR, evidence JSON
);
COMMENT ON TABLE findings IS 'The health of traces: what was guessed, cut or done without';

CREATE TABLE IF NOT EXISTS fates (
    trace_id VARCHAR, span_id VARCHAR,
    fate VARCHAR                    -- step, container, or why it was ignored
);
COMMENT ON TABLE fates IS 'What became of every span';

CREATE TABLE IF NOT EXISTS ties (
    trace_id VARCHAR,
    role VARCHAR,                   -- asked and ran, made and given, call and lone: see traces/ties.py
    service VARCHAR, key VARCHAR, scope VARCHAR, start_ns BIGINT, end_ns BIGINT
);
COMMENT ON TABLE ties IS 'Ends by which a trace may belong with other traces';
