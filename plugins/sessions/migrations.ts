import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-session',
    sql: `CREATE TABLE sessions_session (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      label TEXT,
      message_count INTEGER NOT NULL,
      created_at TEXT NOT NULL
    )`,
  },
  { id: '002-session-agent', sql: 'CREATE INDEX sessions_session_agent ON sessions_session (agent_id, created_at)' },
  {
    // The place of a message is its turn's place, then its own within the turn.
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
]
