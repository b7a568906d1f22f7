import type { Migration } from 'svc/sdk'
import { graphMigrations } from './graph/migrations.ts'
import { removalMigrations } from './removal/migrations.ts'
import { vectorMigrations } from './vectors/migrations.ts'
import { wordMigrations } from './words/migrations.ts'

export const migrations: readonly Migration[] = [
  {
    id: '001-note',
    sql: `CREATE TABLE memory_note (
      agent_id TEXT NOT NULL,
      key TEXT NOT NULL,
      value TEXT NOT NULL,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      PRIMARY KEY (agent_id, key)
    )`,
  },
  {
    // `superseded_by` is empty, as `user_id` and `session_id` are, where there is none: so they compare in every engine.
    id: '002-entry',
    sql: `CREATE TABLE memory_entry (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      level TEXT NOT NULL,
      category TEXT,
      content TEXT NOT NULL,
      -- Of a note.
      key TEXT,
      confidence REAL NOT NULL,
      -- JSON, as source and metadata.
      tags TEXT NOT NULL,
      source TEXT NOT NULL,
      metadata TEXT NOT NULL,
      supersedes TEXT,
      superseded_by TEXT NOT NULL,
      idempotency_key TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      -- Milliseconds since 1970.
      accessed_at INTEGER NOT NULL,
      access_count INTEGER NOT NULL,
      -- The confidence after its decay.
      strength REAL NOT NULL,
      -- The model of its vector; empty until there is one of this content.
      embedded_with TEXT NOT NULL
    );
    CREATE INDEX memory_entry_agent ON memory_entry (agent_id, superseded_by, id);
    CREATE INDEX memory_entry_user ON memory_entry (user_id, agent_id);
    CREATE INDEX memory_entry_chain ON memory_entry (supersedes);
    CREATE UNIQUE INDEX memory_entry_key ON memory_entry (agent_id, key, superseded_by);
    CREATE UNIQUE INDEX memory_entry_repeat ON memory_entry (agent_id, idempotency_key)`,
  },
  {
    id: '003-version',
    sql: `CREATE TABLE memory_version (
      memory_id TEXT NOT NULL,
      number INTEGER NOT NULL,
      content TEXT NOT NULL,
      -- When this content was written, and when and by whom it was replaced.
      written_at TEXT NOT NULL,
      replaced_at TEXT NOT NULL,
      replaced_by TEXT NOT NULL,
      PRIMARY KEY (memory_id, number)
    )`,
  },
  {
    id: '004-tombstone',
    sql: `CREATE TABLE memory_tombstone (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      user_id TEXT NOT NULL,
      created_at TEXT NOT NULL,
      deleted_at TEXT NOT NULL,
      deleted_by TEXT NOT NULL
    )`,
  },
  { id: '005-tombstone-agent', sql: 'CREATE INDEX memory_tombstone_agent ON memory_tombstone (agent_id)' },
  {
    // A byte for each number of the vector, whose length is 127.
    id: '006-vector',
    sql: `CREATE TABLE memory_vector (
      memory_id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      model TEXT NOT NULL,
      vector BLOB NOT NULL
    )`,
  },
  { id: '007-vector-agent', sql: 'CREATE INDEX memory_vector_agent ON memory_vector (agent_id)' },
  {
    // The table of notes stays: a daemon of the version before may still write to it while others are upgraded.
    id: '008-notes-moved',
    sql: `INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, category, content, key, confidence, tags,
        source, metadata, supersedes, superseded_by, idempotency_key, created_at, updated_at, accessed_at, access_count,
        strength, embedded_with)
      SELECT substr(hash, 1, 8) || '-' || substr(hash, 9, 4) || '-5' || substr(hash, 14, 3) || '-8' ||
          substr(hash, 18, 3) || '-' || substr(hash, 21, 12),
        agent_id, '', '', 'agent', NULL, value, key, 1.0, '[]', '{"kind":"agent","labels":["ExternalNetwork"]}', '{}',
        NULL, '', NULL, created_at, updated_at, 0, 0, 1.0, ''
      FROM (SELECT svc_sha256(agent_id || ' ' || key) AS hash, agent_id, key, value, created_at, updated_at
        FROM memory_note) AS note;
    DELETE FROM memory_note`,
  },
  // NULL in versions from before.
  { id: '009-version-source', sql: 'ALTER TABLE memory_version ADD COLUMN source TEXT' },
  ...graphMigrations,
  ...wordMigrations,
  ...vectorMigrations,
  ...removalMigrations,
]
