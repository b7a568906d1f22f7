import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  { id: '001-greeting', sql: 'CREATE TABLE hello_greeting (name TEXT PRIMARY KEY, times INTEGER NOT NULL)' },
]
