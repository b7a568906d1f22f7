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
  {
    id: '002-installed',
    sql: `CREATE TABLE hands_installed (
      name TEXT NOT NULL PRIMARY KEY,
      -- Another one with each installation and removal.
      revision TEXT NOT NULL,
      -- installed or removed: other daemons remove what is removed here.
      state TEXT NOT NULL,
      source TEXT NOT NULL,
      -- Of the files, and an authentication code: who can write rows only cannot install anything.
      files_sha256 TEXT NOT NULL,
      mac TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE TABLE hands_file (
      hand TEXT NOT NULL,
      path TEXT NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (hand, path)
    )`,
  },
  {
    id: '003-members',
    sql: `CREATE TABLE hands_member (
      instance_id TEXT NOT NULL,
      -- Of an agent beside the coordinator, which is the agent of the instance.
      role TEXT NOT NULL,
      agent_id TEXT NOT NULL UNIQUE,
      PRIMARY KEY (instance_id, role)
    )`,
  },
]
