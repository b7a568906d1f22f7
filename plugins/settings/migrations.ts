import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-change',
    // The last change of each key over the API, on a database that daemons share. The value lies in the vault.
    sql: `CREATE TABLE settings_change (
      key TEXT PRIMARY KEY,
      id TEXT NOT NULL,
      number INTEGER NOT NULL,
      daemon TEXT NOT NULL,
      changed_by TEXT NOT NULL,
      changed_at TEXT NOT NULL
    )`,
  },
  {
    id: '002-mac',
    // Of the row and its value, made by a daemon with the key of the vault.
    sql: 'ALTER TABLE settings_change ADD COLUMN mac TEXT',
  },
]
