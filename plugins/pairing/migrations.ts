import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-code',
    sql: `CREATE TABLE pairing_code (
      id TEXT NOT NULL PRIMARY KEY,
      -- Keyed, with a key that is in the vault.
      digest TEXT NOT NULL UNIQUE,
      expires_at TEXT NOT NULL,
      -- Wrong codes that came while this one waited.
      attempts INTEGER NOT NULL
    )`,
  },
  {
    id: '002-device',
    sql: `CREATE TABLE pairing_device (
      id TEXT NOT NULL PRIMARY KEY,
      -- One code makes one device, whoever is quick.
      code_id TEXT NOT NULL UNIQUE,
      -- SHA-256 of its key.
      digest TEXT NOT NULL UNIQUE,
      display_name TEXT NOT NULL,
      platform TEXT NOT NULL,
      paired_at TEXT NOT NULL,
      last_seen TEXT NOT NULL
    )`,
  },
  {
    // A code that only daemons with the key of the vault can make; the version before made none.
    id: '003-device-proof',
    sql: 'ALTER TABLE pairing_device ADD COLUMN proof TEXT',
  },
  {
    // For daemons that did not run when a device was removed.
    id: '004-removed',
    sql: 'CREATE TABLE pairing_removed (id TEXT PRIMARY KEY, removed_at TEXT NOT NULL, proof TEXT NOT NULL)',
  },
]
