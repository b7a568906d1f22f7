import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-install',
    sql: `CREATE TABLE plugin_admin_install (
      name TEXT NOT NULL PRIMARY KEY,
      version TEXT NOT NULL,
      -- Where it came from, such as registry:svc-weather@^1.
      source TEXT NOT NULL,
      hash TEXT NOT NULL,
      signed_by TEXT,
      -- JSON list of what was accepted.
      permissions TEXT NOT NULL,
      -- installing until the new code was loaded.
      state TEXT NOT NULL,
      -- JSON of the row before an update that has not ended.
      previous TEXT,
      installed_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    )`,
  },
  {
    id: '002-replaces',
    // JSON of what was in its place before, while it is installed.
    sql: 'ALTER TABLE plugin_admin_install ADD COLUMN replaces TEXT',
  },
]
