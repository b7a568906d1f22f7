import type { Migration } from 'svc/sdk'

export const clientMigrations: readonly Migration[] = [
  {
    id: 'client-001-agent',
    sql: `CREATE TABLE a2a_agent (
      id TEXT NOT NULL PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      url TEXT NOT NULL UNIQUE,
      source TEXT NOT NULL,
      state TEXT NOT NULL,
      -- As it came, in the form of protocol 1.0, and what people are shown of it: both JSON.
      card TEXT,
      view TEXT,
      trusted_view TEXT,
      fingerprint TEXT,
      discovered_by TEXT,
      discovered_at BIGINT NOT NULL,
      checked_at BIGINT,
      trusted_at BIGINT
    )`,
  },
  {
    id: 'client-002-sent',
    sql: `CREATE TABLE a2a_sent (
      -- Also that of the message.
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      agent_name TEXT NOT NULL,
      url TEXT NOT NULL,
      -- As the other side calls it.
      task_id TEXT,
      context_id TEXT,
      continues TEXT,
      state TEXT NOT NULL,
      message TEXT NOT NULL,
      result TEXT,
      error TEXT,
      asked_by TEXT,
      attempts INTEGER NOT NULL,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      settled_at BIGINT
    );
    CREATE INDEX a2a_sent_task ON a2a_sent (task_id);
    CREATE INDEX a2a_sent_order ON a2a_sent (created_at)`,
  },
  { id: 'client-003-hops', sql: 'ALTER TABLE a2a_sent ADD COLUMN hops INTEGER NOT NULL DEFAULT 1' },
]
