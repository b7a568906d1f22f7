import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-turn',
    sql: `CREATE TABLE journal_turn (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      door TEXT NOT NULL,
      state TEXT NOT NULL,
      on_crash TEXT NOT NULL,
      options TEXT NOT NULL,
      owner TEXT NOT NULL,
      error TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    )`,
  },
  {
    // Covers only open turns, so that a boot after years of turns reads a handful of rows.
    id: '002-open-turns',
    sql: `CREATE INDEX journal_turn_open ON journal_turn (created_at) WHERE state IN ('queued', 'running', 'waiting')`,
  },
  {
    id: '003-effect',
    sql: `CREATE TABLE journal_effect (
      key TEXT NOT NULL PRIMARY KEY,
      turn_id TEXT NOT NULL REFERENCES journal_turn (id) ON DELETE CASCADE,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      state TEXT NOT NULL,
      input TEXT NOT NULL,
      result TEXT,
      created_at TEXT NOT NULL,
      settled_at TEXT
    )`,
  },
  { id: '004-effect-turn', sql: 'CREATE INDEX journal_effect_turn ON journal_effect (turn_id, created_at, key)' },
  {
    id: '005-trace',
    sql: `CREATE TABLE journal_trace (
      agent_id TEXT NOT NULL,
      id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      turn_id TEXT NOT NULL,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      call_id TEXT,
      iteration INTEGER NOT NULL,
      started_at TEXT NOT NULL,
      duration_ms REAL NOT NULL,
      first_ms REAL,
      failed INTEGER NOT NULL,
      input_tokens INTEGER,
      output_tokens INTEGER,
      input TEXT NOT NULL,
      output TEXT NOT NULL,
      PRIMARY KEY (agent_id, id)
    )`,
  },
  { id: '006-turn-agent', sql: 'CREATE INDEX journal_turn_agent ON journal_turn (agent_id, created_at)' },
  // Of all effects only those that left the daemon.
  { id: '007-effect-send', sql: `CREATE INDEX journal_effect_send ON journal_effect (created_at) WHERE kind = 'send'` },
  // The last step of a turn, as JSON: most turns have no other, and a separate row costs a third of what the end of a
  // turn writes.
  { id: '008-turn-traces', sql: 'ALTER TABLE journal_turn ADD COLUMN traces TEXT' },
  // JSON, with the code a repeated request is answered by.
  { id: '009-turn-failure', sql: 'ALTER TABLE journal_turn ADD COLUMN failure TEXT' },
  { id: '010-entry-point', sql: 'ALTER TABLE journal_turn RENAME COLUMN door TO entry_point' },
  {
    // An instance whose turns take longer than a part of its lease counts up its row: one that stands still is dead.
    id: '011-owner',
    sql: 'CREATE TABLE journal_owner (id TEXT NOT NULL PRIMARY KEY, beats BIGINT NOT NULL)',
  },
  // JSON; null when no agent asked for the turn.
  { id: '012-on-behalf', sql: 'ALTER TABLE journal_turn ADD COLUMN on_behalf TEXT' },
]
