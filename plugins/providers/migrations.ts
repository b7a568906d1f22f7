import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  { id: '001-address', sql: 'CREATE TABLE providers_address (provider TEXT PRIMARY KEY, url TEXT NOT NULL)' },
  // Counts the changes of the stored keys of a provider.
  {
    id: '002-key-version',
    sql: 'CREATE TABLE providers_key_version (provider TEXT PRIMARY KEY, version INTEGER NOT NULL)',
  },
]
