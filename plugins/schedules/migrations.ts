import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-job',
    sql: `CREATE TABLE schedules_job (
      id TEXT NOT NULL PRIMARY KEY,
      name TEXT NOT NULL,
      agent_id TEXT NOT NULL,
      -- When, what and where to, as JSON.
      timing TEXT NOT NULL,
      action TEXT NOT NULL,
      targets TEXT NOT NULL,
      missed TEXT NOT NULL,
      session_mode TEXT,
      one_shot INTEGER NOT NULL,
      enabled INTEGER NOT NULL,
      -- Rises with every change, so that of two changes of the same state one fails.
      version INTEGER NOT NULL,
      -- Milliseconds since 1970, as all times here.
      next_run BIGINT,
      -- What the clock showed when next_run was computed.
      planned_at BIGINT NOT NULL,
      last_run BIGINT,
      last_status TEXT,
      failures INTEGER NOT NULL,
      runs INTEGER NOT NULL,
      -- Why it is disabled or has ended.
      reason TEXT,
      -- The agent that made it.
      created_by TEXT,
      labels TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      ended_at BIGINT
    )`,
  },
  { id: '002-job-due', sql: 'CREATE INDEX schedules_job_due ON schedules_job (next_run) WHERE enabled = 1' },
  { id: '003-job-agent', sql: 'CREATE INDEX schedules_job_agent ON schedules_job (agent_id)' },
  {
    id: '004-slot',
    sql: `CREATE TABLE schedules_slot (
      job_id TEXT NOT NULL,
      -- slot, or manual for a run that somebody asked for.
      kind TEXT NOT NULL,
      slot_at BIGINT NOT NULL,
      -- Of a skipped row that stands for all slots up to this moment.
      until_at BIGINT,
      state TEXT NOT NULL,
      reason TEXT,
      detail TEXT,
      late_ms BIGINT NOT NULL,
      run_id TEXT NOT NULL,
      turn_id TEXT,
      result TEXT,
      error TEXT,
      created_at BIGINT NOT NULL,
      ended_at BIGINT,
      PRIMARY KEY (job_id, kind, slot_at)
    )`,
  },
  { id: '005-slot-open', sql: "CREATE INDEX schedules_slot_open ON schedules_slot (job_id) WHERE state = 'open'" },
  { id: '006-slot-created', sql: 'CREATE INDEX schedules_slot_created ON schedules_slot (created_at)' },
  {
    id: '007-slot-workflow',
    sql: `ALTER TABLE schedules_slot ADD COLUMN workflow_run_id TEXT;
      -- When that run began.
      ALTER TABLE schedules_slot ADD COLUMN begun_at BIGINT`,
  },
  {
    id: '008-slot-manual',
    sql: "CREATE UNIQUE INDEX schedules_slot_manual ON schedules_slot (run_id) WHERE kind = 'manual'",
  },
  // As JSON. Without it, that of created_by alone.
  { id: '009-job-behalf', sql: 'ALTER TABLE schedules_job ADD COLUMN on_behalf TEXT' },
  // Daemons that what asked for it came through.
  { id: '010-job-hops', sql: 'ALTER TABLE schedules_job ADD COLUMN hops INTEGER NOT NULL DEFAULT 0' },
]
