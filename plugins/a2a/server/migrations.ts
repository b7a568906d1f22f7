import type { Migration } from 'svc/sdk'

export const serverMigrations: readonly Migration[] = [
  {
    id: 'server-001-task',
    sql: `CREATE TABLE a2a_task (
      -- Also that of the turn.
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      context_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      -- What the client calls its message.
      message_id TEXT NOT NULL,
      -- SHA-256 of the content, so that a repeated message is told from another one with its id.
      fingerprint TEXT NOT NULL,
      -- As it came, JSON of protocol 1.0.
      message TEXT NOT NULL,
      -- The last state on record; an ended one is final.
      state TEXT NOT NULL,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE INDEX a2a_task_listed ON a2a_task (agent_id, updated_at, id);
    CREATE INDEX a2a_task_context ON a2a_task (agent_id, context_id);
    CREATE INDEX a2a_task_open ON a2a_task (id) WHERE state IN ('submitted', 'working');
    CREATE TABLE a2a_push (
      task_id TEXT NOT NULL,
      id TEXT NOT NULL,
      url TEXT NOT NULL,
      -- The scheme of the Authorization header; its value and the token are in the vault.
      scheme TEXT,
      version TEXT NOT NULL,
      created_at TEXT NOT NULL,
      PRIMARY KEY (task_id, id)
    )`,
  },
  // Who gave the task; '' is whoever holds the key.
  { id: 'server-002-owner', sql: "ALTER TABLE a2a_task ADD COLUMN owner TEXT NOT NULL DEFAULT ''" },
]
