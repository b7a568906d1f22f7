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
  {
    id: '003-homes',
    // Daemons that share a database have homes of their own. The table before stays for those of an earlier version.
    sql: `CREATE TABLE plugin_admin_installed (
      -- Id of the home; empty where only one daemon can use the database.
      home TEXT NOT NULL,
      name TEXT NOT NULL,
      version TEXT NOT NULL,
      source TEXT NOT NULL,
      hash TEXT NOT NULL,
      signed_by TEXT,
      permissions TEXT NOT NULL,
      state TEXT NOT NULL,
      previous TEXT,
      replaces TEXT,
      installed_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      PRIMARY KEY (home, name)
    );
    INSERT INTO plugin_admin_installed (home, name, version, source, hash, signed_by, permissions, state, previous,
        replaces, installed_at, updated_at)
      SELECT '', name, version, source, hash, signed_by, permissions, state, previous, replaces, installed_at, updated_at
      FROM plugin_admin_install`,
  },
  {
    id: '004-shared',
    sql: `CREATE TABLE plugin_admin_change (
      name TEXT PRIMARY KEY,
      number INTEGER NOT NULL,
      -- JSON, and an authentication code of it: who can write rows only cannot make one.
      about TEXT NOT NULL,
      mac TEXT NOT NULL
    );
    CREATE TABLE plugin_admin_chunk (
      name TEXT NOT NULL,
      at INTEGER NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (name, at)
    );
    CREATE TABLE plugin_admin_outcome (
      home TEXT NOT NULL,
      daemon TEXT NOT NULL,
      name TEXT NOT NULL,
      change_id TEXT NOT NULL,
      outcome TEXT NOT NULL,
      reason TEXT NOT NULL,
      PRIMARY KEY (home, name)
    );
    -- One row at most: the daemon that installs or removes plugins now.
    CREATE TABLE plugin_admin_turn (id INTEGER PRIMARY KEY, holder TEXT NOT NULL)`,
  },
]
