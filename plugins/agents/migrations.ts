import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-agent',
    sql: `CREATE TABLE agents_agent (
      id TEXT NOT NULL PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      manifest_toml TEXT NOT NULL,
      state TEXT NOT NULL,
      mode TEXT NOT NULL,
      session_id TEXT NOT NULL,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    )`,
  },
  {
    // `pin` and `identity` are JSON.
    id: '002-profile',
    sql: `ALTER TABLE agents_agent ADD COLUMN permission TEXT NOT NULL DEFAULT 'full';
      ALTER TABLE agents_agent ADD COLUMN identity TEXT NOT NULL DEFAULT '{}';
      ALTER TABLE agents_agent ADD COLUMN pin TEXT;
      ALTER TABLE agents_agent ADD COLUMN cloned_from TEXT;`,
  },
  { id: '003-signer', sql: 'ALTER TABLE agents_agent ADD COLUMN signed_by TEXT' },
  // JSON: the signed manifest as it was sent, so that the signature can be checked when the row is read.
  { id: '004-envelope', sql: 'ALTER TABLE agents_agent ADD COLUMN envelope TEXT' },
]
