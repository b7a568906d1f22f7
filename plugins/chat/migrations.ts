import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  // What is done once in a home, beyond what SQL over the tables of one plugin can do.
  { id: '001-upkeep', sql: 'CREATE TABLE chat_upkeep (name TEXT NOT NULL PRIMARY KEY, done_at TEXT NOT NULL)' },
]
