import type { Migration } from 'svc/sdk'

/** In the list of the plugin. */
export const pinMigrations: readonly Migration[] = [
  {
    id: '100-tool-pin',
    sql: `CREATE TABLE mcp_tool_pin (
      server TEXT NOT NULL,
      tool TEXT NOT NULL,
      -- SHA-256 of all that a model is told of the tool, as it was approved.
      fingerprint TEXT NOT NULL,
      definition TEXT NOT NULL,
      PRIMARY KEY (server, tool)
    )`,
  },
]
