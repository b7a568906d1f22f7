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
  {
    id: '005-scope',
    sql: `ALTER TABLE approvals_request ADD COLUMN intent TEXT NOT NULL DEFAULT '';
      ALTER TABLE approvals_request ADD COLUMN standing_key TEXT;
      ALTER TABLE approvals_request ADD COLUMN covers TEXT;
      ALTER TABLE approvals_request ADD COLUMN scope TEXT`,
  },
  {
    id: '006-grant',
    sql: `CREATE TABLE approvals_grant (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      agent_name TEXT NOT NULL,
      session_id TEXT NOT NULL,
      tool_name TEXT NOT NULL,
      standing_key TEXT NOT NULL,
      covers TEXT NOT NULL,
      approval_id TEXT NOT NULL,
      granted_at TEXT NOT NULL,
      granted_by TEXT NOT NULL,
      uses INTEGER NOT NULL,
      last_used_at TEXT,
      revoked_at TEXT,
      revoked_by TEXT
    )`,
  },
  {
    id: '007-grant-live',
    sql: 'CREATE INDEX approvals_grant_live ON approvals_grant (agent_id, session_id) WHERE revoked_at IS NULL',
  },
  {
    // Who approved first, where two people have to.
    id: '008-two-people',
    sql: `ALTER TABLE approvals_request ADD COLUMN needed INTEGER NOT NULL DEFAULT 1;
      ALTER TABLE approvals_request ADD COLUMN first_by TEXT;
      ALTER TABLE approvals_request ADD COLUMN first_person TEXT;
      ALTER TABLE approvals_request ADD COLUMN first_at TEXT;
      ALTER TABLE approvals_request ADD COLUMN first_in_own_chat INTEGER NOT NULL DEFAULT 0`,
  },
  {
    id: '009-escalation',
    sql: `CREATE TABLE approvals_escalation (
      id TEXT NOT NULL PRIMARY KEY,
      approval_id TEXT NOT NULL,
      channel TEXT NOT NULL,
      chat TEXT NOT NULL,
      escalated_at TEXT NOT NULL
    )`,
  },
  {
    id: '010-escalation-approval',
    sql: 'CREATE INDEX approvals_escalation_approval ON approvals_escalation (approval_id)',
  },
  {
    id: '011-form',
    sql: `ALTER TABLE approvals_request ADD COLUMN form TEXT;
      ALTER TABLE approvals_request ADD COLUMN content TEXT`,
  },
  {
    id: '012-lasting',
    sql: 'ALTER TABLE approvals_request ADD COLUMN lasting INTEGER NOT NULL DEFAULT 0',
  },
  {
    id: '013-credential',
    // What the approvers presented, where it was not the API key.
    sql: `ALTER TABLE approvals_request ADD COLUMN credential TEXT;
      ALTER TABLE approvals_request ADD COLUMN first_credential TEXT`,
  },
  {
    id: '014-proof',
    // That a daemon wrote what the row says.
    sql: `ALTER TABLE approvals_request ADD COLUMN proof TEXT;
      ALTER TABLE approvals_request ADD COLUMN first_proof TEXT;
      ALTER TABLE approvals_grant ADD COLUMN proof TEXT`,
  },
  {
    // What the agent is told by whoever rejected.
    id: '015-reason',
    sql: 'ALTER TABLE approvals_request ADD COLUMN reason TEXT',
  },
]
