import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-installed',
    sql: `CREATE TABLE integrations_installed (
      -- Also the name of its MCP server.
      id TEXT NOT NULL PRIMARY KEY,
      template TEXT NOT NULL,
      name TEXT NOT NULL,
      -- adding, installed or removing: what was cut off by the end of the process is undone or ended by the next one.
      state TEXT NOT NULL,
      installed_at TEXT NOT NULL
    )`,
  },
  {
    id: '002-owner',
    // The id of the daemon that is adding or removing it.
    sql: 'ALTER TABLE integrations_installed ADD COLUMN owner TEXT',
  },
]
