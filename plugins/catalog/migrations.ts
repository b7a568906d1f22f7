import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-alias',
    // A row without a target removes the built-in alias.
    sql: `CREATE TABLE catalog_alias (
      alias TEXT PRIMARY KEY,
      provider TEXT,
      model TEXT,
      created_at TEXT NOT NULL
    )`,
  },
  {
    id: '002-model',
    sql: `CREATE TABLE catalog_model (
      provider TEXT NOT NULL,
      id TEXT NOT NULL,
      entry TEXT NOT NULL,
      created_at TEXT NOT NULL,
      PRIMARY KEY (provider, id)
    )`,
  },
  {
    id: '003-registry',
    sql: `CREATE TABLE catalog_registry (
      name TEXT PRIMARY KEY,
      url TEXT NOT NULL,
      version TEXT NOT NULL,
      fetched_at TEXT NOT NULL,
      models INTEGER NOT NULL,
      entries TEXT NOT NULL
    )`,
  },
]
