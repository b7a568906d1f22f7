import type { Migration } from 'svc/sdk'
import { pinMigrations } from './features/migrations.ts'

export const migrations: readonly Migration[] = [
  {
    id: '001-server',
    sql: `CREATE TABLE mcp_server (
      name TEXT NOT NULL PRIMARY KEY,
      -- JSON, without the values of headers and variables, which are in the vault.
      spec TEXT NOT NULL,
      origin TEXT NOT NULL,
      created_at TEXT NOT NULL
    )`,
  },
  {
    id: '002-tool-list',
    sql: `CREATE TABLE mcp_tool_list (
      server TEXT NOT NULL PRIMARY KEY,
      -- SHA-256 of what the server is: the list of another program is not its list.
      spec_digest TEXT NOT NULL,
      -- JSON: what it said of itself, and its tools.
      listing TEXT NOT NULL,
      listed_at TEXT NOT NULL
    )`,
  },
  ...pinMigrations,
  {
    id: '200-attempt',
    sql: `CREATE TABLE mcp_server_attempt (
      -- Of a server that is being added or changed: what the end of the process cuts off is undone by the next one.
      name TEXT NOT NULL PRIMARY KEY,
      url TEXT,
      -- 1: the attempt made the folder of its program.
      new_folder INTEGER NOT NULL
    )`,
  },
  {
    // Differs with each change, also with one of what is in the vault only.
    id: '201-server-revision',
    sql: "ALTER TABLE mcp_server ADD COLUMN revision TEXT NOT NULL DEFAULT ''",
  },
  {
    // The daemon that adds or changes it: others on the database undo nothing of what it is doing.
    id: '202-attempt-owner',
    sql: "ALTER TABLE mcp_server_attempt ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
  },
]
