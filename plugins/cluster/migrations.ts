import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-member',
    sql: `CREATE TABLE cluster_member (
      id TEXT PRIMARY KEY,
      home_id TEXT NOT NULL,
      name TEXT NOT NULL,
      host_name TEXT NOT NULL,
      address TEXT,
      version TEXT NOT NULL,
      started_at TEXT NOT NULL,
      state TEXT NOT NULL,
      lease_ms INTEGER NOT NULL,
      beats INTEGER NOT NULL
    )`,
  },
  {
    id: '002-configuration',
    sql: 'CREATE TABLE cluster_config (member TEXT PRIMARY KEY, sections TEXT NOT NULL, keys TEXT NOT NULL)',
  },
  // Where it listens, also when its operator names another address.
  { id: '003-listens', sql: 'ALTER TABLE cluster_member ADD COLUMN listens TEXT' },
  { id: '004-lacks', sql: 'ALTER TABLE cluster_member ADD COLUMN lacks TEXT' },
  {
    id: '005-agreement',
    sql: `CREATE TABLE cluster_agreement (member TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
      PRIMARY KEY (member, key))`,
  },
]
