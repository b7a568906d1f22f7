import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-target',
    sql: `CREATE TABLE webhooks_target (
      id TEXT NOT NULL PRIMARY KEY,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      url TEXT NOT NULL,
      -- As they were asked for, JSON.
      events TEXT NOT NULL,
      enabled INTEGER NOT NULL,
      has_secret INTEGER NOT NULL,
      -- The entry of the audit trail up to which it has been told.
      position INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    )`,
  },
  {
    id: '002-delivery',
    sql: `CREATE TABLE webhooks_delivery (
      target_id TEXT NOT NULL,
      event_id TEXT NOT NULL,
      -- Order within a target.
      seq INTEGER NOT NULL,
      -- As the target calls it.
      event TEXT NOT NULL,
      occurred_at TEXT NOT NULL,
      data TEXT NOT NULL,
      state TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      due_at TEXT NOT NULL,
      lease_until TEXT,
      status INTEGER,
      error TEXT,
      settled_at TEXT,
      PRIMARY KEY (target_id, event_id)
    );
    CREATE INDEX webhooks_delivery_order ON webhooks_delivery (target_id, seq);
    CREATE INDEX webhooks_delivery_waiting ON webhooks_delivery (target_id, seq) WHERE state = 'pending';`,
  },
  {
    id: '003-inbound',
    // One text in several parts: the checksum of a released migration covers its spaces and line breaks.
    sql:
      'CREATE TABLE webhooks_wake (\n      id TEXT NOT NULL PRIMARY KEY, agent TEXT, mode TEXT NOT NULL, ' +
      'text TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, created_at TEXT NOT NULL\n    );\n' +
      '    CREATE TABLE webhooks_seen (id TEXT NOT NULL PRIMARY KEY, fingerprint TEXT NOT NULL, ' +
      'effect_id TEXT NOT NULL, seen_at TEXT NOT NULL);',
  },
  {
    id: '004-answer',
    sql: `CREATE TABLE webhooks_answer (
      -- Also that of the turn.
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      channel TEXT NOT NULL,
      account TEXT,
      recipient TEXT NOT NULL,
      thread TEXT,
      state TEXT NOT NULL,
      error TEXT,
      created_at TEXT NOT NULL
    );
    CREATE INDEX webhooks_answer_waiting ON webhooks_answer (created_at) WHERE state = 'pending'`,
  },
]
