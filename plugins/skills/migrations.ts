import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-installed',
    sql: `CREATE TABLE skills_installed (
      name TEXT NOT NULL PRIMARY KEY,
      -- Another one with each installation and removal.
      revision TEXT NOT NULL,
      -- installed or removed: other daemons remove what is removed here.
      state TEXT NOT NULL,
      version TEXT NOT NULL,
      source TEXT NOT NULL,
      sha256 TEXT NOT NULL,
      signed_by TEXT,
      -- JSON list of what was accepted.
      permissions TEXT NOT NULL,
      -- Of the files, and an authentication code: who can write rows only cannot install anything.
      files_sha256 TEXT NOT NULL,
      mac TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE TABLE skills_file (
      skill TEXT NOT NULL,
      path TEXT NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (skill, path)
    )`,
  },
]
