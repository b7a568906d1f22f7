import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-job',
    sql: `CREATE TABLE queue_job (
      lane TEXT NOT NULL,
      id TEXT NOT NULL,
      payload TEXT NOT NULL,
      state TEXT NOT NULL,
      group_key TEXT,
      agent_id TEXT,
      failures INTEGER NOT NULL,
      losses INTEGER NOT NULL,
      -- Jobs that are due at the same time run in the order of this.
      sequence TEXT NOT NULL,
      -- Milliseconds since 1970.
      created_at BIGINT NOT NULL,
      due_at BIGINT NOT NULL,
      -- Of one that runs. A claim is unique; its owner is the same in every process on one home.
      claim_id TEXT,
      owner TEXT,
      lease_until BIGINT,
      settled_at BIGINT,
      error TEXT,
      PRIMARY KEY (lane, id)
    )`,
  },
  { id: '002-job-due', sql: 'CREATE INDEX queue_job_due ON queue_job (state, lane, due_at, sequence)' },
  { id: '003-job-settled', sql: 'CREATE INDEX queue_job_settled ON queue_job (lane, settled_at)' },
  {
    id: '004-job-group',
    sql: `CREATE UNIQUE INDEX queue_job_group ON queue_job (lane, group_key)
      WHERE state = 'running' AND group_key IS NOT NULL`,
  },
  { id: '005-job-agent', sql: "CREATE INDEX queue_job_agent ON queue_job (agent_id) WHERE state = 'pending'" },
  // Of one that runs: what it would wait for has happened meanwhile.
  { id: '006-job-hurried', sql: 'ALTER TABLE queue_job ADD COLUMN hurried INTEGER NOT NULL DEFAULT 0' },
  // The work that led to it, which its worker goes on with.
  { id: '007-job-origin', sql: 'ALTER TABLE queue_job ADD COLUMN origin TEXT' },
]
