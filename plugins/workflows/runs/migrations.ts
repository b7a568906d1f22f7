import type { Migration } from 'svc/sdk'

export const runMigrations: readonly Migration[] = [
  {
    id: '101-runs',
    sql: `CREATE TABLE workflows_run (
      id TEXT NOT NULL PRIMARY KEY,
      workflow_id TEXT NOT NULL,
      workflow_name TEXT NOT NULL,
      -- The workflow as it was when the run began, JSON.
      definition TEXT NOT NULL,
      input TEXT NOT NULL,
      cause TEXT NOT NULL,
      state TEXT NOT NULL,
      -- Where it goes on: the step, the iteration of a loop, and the input.
      step_index INTEGER NOT NULL,
      iteration INTEGER NOT NULL,
      step_input TEXT NOT NULL,
      output TEXT,
      error TEXT,
      steps_completed INTEGER NOT NULL,
      worked_ms BIGINT NOT NULL,
      -- Workflows that run each other: how many are above this one, and the attempt that waits for it.
      depth INTEGER NOT NULL,
      parent_run_id TEXT,
      parent_key TEXT,
      rerun_of TEXT,
      -- Raised by whoever takes the run: what an earlier worker writes after that fails.
      epoch INTEGER NOT NULL,
      -- Raised by every change, so that readers can ask for what is new.
      revision INTEGER NOT NULL,
      -- Milliseconds since 1970.
      created_at BIGINT NOT NULL,
      started_at BIGINT,
      completed_at BIGINT
    );
    CREATE INDEX workflows_run_list ON workflows_run (workflow_id, created_at, id);
    CREATE INDEX workflows_run_active ON workflows_run (state) WHERE state IN ('Pending', 'Running', 'Paused');
    CREATE INDEX workflows_run_parent ON workflows_run (parent_run_id) WHERE parent_run_id IS NOT NULL;
    CREATE TABLE workflows_attempt (
      run_id TEXT NOT NULL,
      step_index INTEGER NOT NULL,
      iteration INTEGER NOT NULL,
      attempt INTEGER NOT NULL,
      -- The idempotency key of its effects.
      key TEXT NOT NULL,
      step TEXT NOT NULL,
      type TEXT NOT NULL,
      state TEXT NOT NULL,
      input TEXT NOT NULL,
      prompt TEXT NOT NULL,
      output TEXT,
      error TEXT,
      agent_id TEXT,
      agent_name TEXT,
      -- Of one that waits: what its step type keeps, until when, for which event, and whether that has happened.
      wait_state TEXT,
      wake_at BIGINT,
      waits_for TEXT,
      woken INTEGER NOT NULL,
      input_tokens BIGINT NOT NULL,
      output_tokens BIGINT NOT NULL,
      cost_usd REAL,
      started_at BIGINT NOT NULL,
      ended_at BIGINT,
      revision INTEGER NOT NULL,
      PRIMARY KEY (run_id, step_index, iteration, attempt)
    );
    CREATE UNIQUE INDEX workflows_attempt_key ON workflows_attempt (key);
    CREATE INDEX workflows_attempt_waits ON workflows_attempt (waits_for) WHERE waits_for IS NOT NULL;
    CREATE TABLE workflows_variable (
      run_id TEXT NOT NULL,
      name TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (run_id, name)
    )`,
  },
]
