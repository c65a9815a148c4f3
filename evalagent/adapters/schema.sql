-- The warehouse: every run of a home, for queries and reports. Rebuildable at any time from the run folders
-- (`evalagent store rebuild`). All rows of a run are replaced together, so loading twice changes nothing.
-- Times are nanoseconds since the epoch; NULL means not known and never 0.

CREATE TABLE IF NOT EXISTS runs (
    run_id      VARCHAR PRIMARY KEY,
    suite       VARCHAR,            -- the suite's name
    started     TIMESTAMPTZ,
    finished    TIMESTAMPTZ,        -- NULL: not finished
    exit_code   INTEGER,            -- 0 passed, 1 the agent failed, 3 could not be judged, 4 own budget spent
    verdict     VARCHAR,            -- pass, fail, not_judged
    judge       VARCHAR,            -- who judged what no rule decides: rules, none, anthropic, bedrock, ...
    sandbox     VARCHAR,            -- process or docker
    trials      INTEGER,            -- trials per case
    fingerprint VARCHAR,            -- hash of suite, cases, agent source, seeds and options
    summary     JSON                -- summary.json, whole
);
COMMENT ON TABLE runs IS 'One row per run';

CREATE TABLE IF NOT EXISTS trials (
    run_id VARCHAR, case_id VARCHAR, trial INTEGER,
    trace_ids VARCHAR[],            -- the traces its agent left; empty if none arrived
    verdict VARCHAR,                -- pass, fail, not_judged
    reasons VARCHAR[],              -- worst first
    exit VARCHAR,                   -- completed, crashed, timeout, no_answer, infrastructure
    severity VARCHAR,               -- what a failure costs: harmless, normal, costly
    held_out BOOLEAN,
    steps INTEGER, tokens BIGINT, cost_usd DOUBLE, wall_s DOUBLE,
    answer VARCHAR,
    PRIMARY KEY (run_id, case_id, trial)
);
COMMENT ON TABLE trials IS 'One run of one case; an infrastructure retry is not a trial';

CREATE TABLE IF NOT EXISTS spans (
    run_id VARCHAR, trace_id VARCHAR, span_id VARCHAR, parent_id VARCHAR,
    name VARCHAR, scope VARCHAR, start_ns BIGINT, end_ns BIGINT,
    status VARCHAR,                 -- unset, ok, error
    case_id VARCHAR, trial INTEGER, -- from the resource attributes evalagent.case and evalagent.trial
    fate VARCHAR,                   -- step, container, or why it was ignored
    payload JSON,                   -- the whole span, masked
    PRIMARY KEY (run_id, trace_id, span_id)
);
COMMENT ON TABLE spans IS 'Spans as they came, secrets masked';

CREATE TABLE IF NOT EXISTS steps (
    run_id VARCHAR, trace_id VARCHAR,
    step_id VARCHAR,                -- the span that names it; requesting span + # + call id where there is no span
    position INTEGER,               -- 0, 1, ... in the order of the trace, parents first
    span_ids VARCHAR[], kind VARCHAR, name VARCHAR, agent VARCHAR, aspect VARCHAR,
    start_ns BIGINT, end_ns BIGINT,
    error VARCHAR,                  -- NULL: none
    input_tokens BIGINT, output_tokens BIGINT, cost_usd DOUBLE,
    model VARCHAR, executed BOOLEAN, virtual BOOLEAN,
    input JSON, output JSON,
    PRIMARY KEY (run_id, trace_id, step_id)
);
COMMENT ON TABLE steps IS 'One thing the agent did';

CREATE TABLE IF NOT EXISTS edges (
    run_id VARCHAR, trace_id VARCHAR,
    child VARCHAR, parent VARCHAR,  -- step ids: child depends on parent
    parent_trace_id VARCHAR,        -- the parent's trace, mostly the same
    via VARCHAR,                    -- call, data, link, handoff, retry, order
    confidence DOUBLE,              -- 0 to 1
    PRIMARY KEY (run_id, trace_id, child, parent_trace_id, parent)
);
COMMENT ON TABLE edges IS 'What depended on what';

CREATE TABLE IF NOT EXISTS findings (
    run_id VARCHAR, number INTEGER, -- 0, 1, ... within the run
    trace_id VARCHAR, step_id VARCHAR, code VARCHAR, severity VARCHAR, message VARCHAR, evidence JSON,
    PRIMARY KEY (run_id, number)
);
COMMENT ON TABLE findings IS 'What checks remarked on steps (step_id NULL: on the trace)';

CREATE TABLE IF NOT EXISTS verdicts (
    run_id VARCHAR, number INTEGER,
    trace_id VARCHAR, step_id VARCHAR, metric VARCHAR, verdict VARCHAR,
    score DOUBLE,                   -- NULL exactly where the verdict is not_judged
    own_fault VARCHAR, aspect VARCHAR, judge VARCHAR, rubric VARCHAR, category VARCHAR, reason VARCHAR, evidence JSON,
    PRIMARY KEY (run_id, number)
);
COMMENT ON TABLE verdicts IS 'pass, fail or not_judged of steps (step_id NULL: of the trace)';

CREATE TABLE IF NOT EXISTS attributions (
    run_id VARCHAR, trace_id VARCHAR, verdict VARCHAR,
    first_failing_step VARCHAR, ambiguous BOOLEAN,
    root_causes JSON,               -- [{step_id, score, category, path, reason}], most likely first
    recovered JSON,                 -- [{step_id, by, reason}]: errors made good, blameless
    PRIMARY KEY (run_id, trace_id)
);
COMMENT ON TABLE attributions IS 'Where a trace went wrong';

CREATE TABLE IF NOT EXISTS outcomes (
    run_id VARCHAR, case_id VARCHAR, trial INTEGER, verdict VARCHAR, reason VARCHAR,
    expected JSON, unexpected JSON, masked JSON,
    PRIMARY KEY (run_id, case_id, trial)
);
COMMENT ON TABLE outcomes IS 'The end state of the world, graded';

CREATE OR REPLACE VIEW failing_steps AS
SELECT s.run_id, r.suite, t.case_id, t.trial, s.trace_id, s.step_id, s.position, s.kind, s.name, s.aspect, v.category, v.reason
FROM steps s
JOIN runs r USING (run_id)
JOIN verdicts v ON v.run_id = s.run_id AND v.trace_id = s.trace_id AND v.step_id = s.step_id AND v.verdict = 'fail'
LEFT JOIN trials t ON t.run_id = s.run_id AND list_contains(t.trace_ids, s.trace_id);
COMMENT ON VIEW failing_steps IS 'Every failed step with its case, trial and reason';
