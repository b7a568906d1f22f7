import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-session',
    sql: `CREATE TABLE sessions_session (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      label TEXT,
      message_count INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      -- Messages that were ever appended: the last one's number.
      appended INTEGER NOT NULL DEFAULT 0,
      -- Of what is stored: a copy of it proves itself by this.
      fingerprint INTEGER NOT NULL DEFAULT 0
    )`,
  },
  { id: '002-session-agent', sql: 'CREATE INDEX sessions_session_agent ON sessions_session (agent_id, created_at)' },
  {
    // Messages are ordered by turn, then by message: `turn_seq` is the number of the turn's first message, `seq` its
    // own.
    id: '003-message',
    sql: `CREATE TABLE sessions_message (
      session_id TEXT NOT NULL,
      turn_seq INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      id TEXT NOT NULL UNIQUE,
      turn_id TEXT NOT NULL,
      role TEXT NOT NULL,
      blocks TEXT NOT NULL,
      mark TEXT,
      chars INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      PRIMARY KEY (session_id, turn_seq, seq)
    )`,
  },
  // Without the session: turns are numbered by time, so all that is written now lies at the end of this index.
  { id: '004-message-turn', sql: 'CREATE INDEX sessions_message_turn ON sessions_message (turn_id, seq)' },
  {
    // Ordered by the last summarized message. A revoked summary stays, marked.
    id: '005-summary',
    sql: `CREATE TABLE sessions_summary (
      session_id TEXT NOT NULL,
      last_turn_seq INTEGER NOT NULL,
      last_seq INTEGER NOT NULL,
      id TEXT NOT NULL,
      text TEXT NOT NULL,
      labels TEXT NOT NULL,
      first_message_id TEXT NOT NULL,
      last_message_id TEXT NOT NULL,
      message_count INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      undone_at TEXT,
      PRIMARY KEY (session_id, last_turn_seq, last_seq, id)
    )`,
  },
  {
    id: '006-session-label',
    sql: 'CREATE INDEX sessions_session_label ON sessions_session (agent_id, label) WHERE label IS NOT NULL',
  },
  {
    // NULL: models are given the turn. Otherwise 'failed', or 'retried' and 'dropped', which are not shown either.
    id: '007-message-turn-state',
    sql: `ALTER TABLE sessions_message ADD COLUMN turn_state TEXT;
      ALTER TABLE sessions_message ADD COLUMN error_code TEXT;
      ALTER TABLE sessions_message ADD COLUMN error TEXT;
      ALTER TABLE sessions_message ADD COLUMN retryable INTEGER`,
  },
  {
    id: '008-message-failed',
    sql: `CREATE INDEX sessions_message_failed ON sessions_message (session_id, turn_seq) WHERE turn_state = 'failed'`,
  },
  {
    // Branches that are being copied: without a session their messages are shown nowhere.
    id: '009-branching',
    sql: 'CREATE TABLE sessions_branching (session_id TEXT NOT NULL PRIMARY KEY, started_at TEXT NOT NULL)',
  },
]
