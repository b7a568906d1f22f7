import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-record',
    sql:
      `CREATE TABLE usage_record (
      id INTEGER PRIMARY KEY, recorded_at TEXT NOT NULL,
      agent_id TEXT NOT NULL, session_id TEXT NOT NULL, turn_id TEXT NOT NULL, provider TEXT NOT NULL, ` +
      `model TEXT NOT NULL,
      input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_input_tokens INTEGER NOT NULL,
      cost_usd REAL, estimated INTEGER NOT NULL
    );
    CREATE INDEX usage_record_time ON usage_record (recorded_at);`,
  },
  { id: '002-agent', sql: 'CREATE INDEX usage_record_agent ON usage_record (agent_id, session_id)' },
  {
    id: '003-spending',
    // Sums of the records up to to_id; those after from_id are being added. By agent and, under the empty name, of all;
    // by hour, day and month as their time begins, and, under the empty one, for ever.
    sql:
      `CREATE TABLE usage_tally (
      scope TEXT NOT NULL, period TEXT NOT NULL, nano INTEGER NOT NULL, tokens INTEGER NOT NULL, ` +
      `calls INTEGER NOT NULL, unpriced INTEGER NOT NULL, PRIMARY KEY (scope, period)
    );
    CREATE TABLE usage_fold (id INTEGER PRIMARY KEY, from_id INTEGER NOT NULL, to_id INTEGER NOT NULL);
    INSERT INTO usage_fold (id, from_id, to_id) VALUES (1, 0, 0);
    CREATE TABLE usage_claim (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, nano INTEGER NOT NULL, ` +
      `tokens INTEGER NOT NULL, expires_at TEXT NOT NULL);`,
  },
  {
    id: '004-name',
    // Name of a removed agent.
    sql: 'CREATE TABLE usage_name (agent_id TEXT PRIMARY KEY, name TEXT NOT NULL)',
  },
  // Set on PostgreSQL only, where it may not be known whether a record is written: written again, it counts once.
  {
    id: '005-entry-once',
    sql: `ALTER TABLE usage_record ADD COLUMN entry_id TEXT;
    CREATE UNIQUE INDEX usage_record_entry ON usage_record (entry_id) WHERE entry_id IS NOT NULL`,
  },
]
