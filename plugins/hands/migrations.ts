import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-instances',
    sql: `CREATE TABLE hands_instance (
      id TEXT NOT NULL PRIMARY KEY,
      hand_id TEXT NOT NULL,
      -- One of its own among the instances of a hand.
      name TEXT NOT NULL,
      agent_id TEXT NOT NULL UNIQUE,
      schedule_id TEXT NOT NULL UNIQUE,
      -- JSON, values by key.
      settings TEXT NOT NULL,
      -- HAND.toml as it was: an instance goes on with it, at daemons that do not have the file too.
      definition TEXT NOT NULL,
      version INTEGER NOT NULL,
      activated_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      UNIQUE (hand_id, name)
    )`,
  },
]
