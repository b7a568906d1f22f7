import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  { id: '001-address', sql: 'CREATE TABLE providers_address (provider TEXT PRIMARY KEY, url TEXT NOT NULL)' },
]
