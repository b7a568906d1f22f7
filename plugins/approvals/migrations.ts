import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-request',
    sql: `CREATE TABLE approvals_request (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      agent_name TEXT NOT NULL,
      turn_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      call_id TEXT NOT NULL,
      tool_name TEXT NOT NULL,
      action TEXT NOT NULL,
      description TEXT NOT NULL,
      summary TEXT NOT NULL,
      payload TEXT NOT NULL,
      action_hash TEXT NOT NULL,
      risk TEXT NOT NULL,
      state TEXT NOT NULL,
      requested_at TEXT NOT NULL,
      timeout_secs INTEGER NOT NULL,
      expires_at TEXT NOT NULL,
      decided_at TEXT,
      decided_by TEXT,
      consumed_at TEXT
    )`,
  },
  {
    id: '002-pending',
    sql: `CREATE INDEX approvals_request_pending ON approvals_request (agent_id, requested_at) WHERE state = 'pending'`,
  },
  { id: '003-decided', sql: 'CREATE INDEX approvals_request_decided ON approvals_request (decided_at)' },
  {
    id: '004-action',
    sql: 'CREATE INDEX approvals_request_action ON approvals_request (agent_id, action_hash, requested_at)',
  },
]
