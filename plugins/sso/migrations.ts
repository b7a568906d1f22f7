import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-session',
    sql: `CREATE TABLE sso_session (
      id TEXT NOT NULL PRIMARY KEY,
      -- SHA-256 of the token, which is stored nowhere.
      digest TEXT NOT NULL UNIQUE,
      provider TEXT NOT NULL,
      issuer TEXT NOT NULL,
      sub TEXT NOT NULL,
      email TEXT,
      email_verified INTEGER NOT NULL,
      name TEXT,
      picture TEXT,
      created_at TEXT NOT NULL,
      expires_at TEXT NOT NULL
    );
    CREATE INDEX sso_session_expiry ON sso_session (expires_at)`,
  },
  {
    id: '002-once',
    // What counts once, by its digest, and what is handed over under it.
    sql: 'CREATE TABLE sso_once (digest TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at TEXT NOT NULL)',
  },
  {
    // A code that only daemons with the key of the vault can make. Who signed in before it signs in again.
    id: '003-session-proof',
    sql: 'ALTER TABLE sso_session ADD COLUMN proof TEXT',
  },
  {
    // Sign-ins that were ended before their time, for daemons that did not run then.
    id: '004-ended',
    sql: 'CREATE TABLE sso_ended (id TEXT PRIMARY KEY, expires_at TEXT NOT NULL, proof TEXT NOT NULL)',
  },
]
