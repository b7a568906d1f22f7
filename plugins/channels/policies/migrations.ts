import type { Migration } from 'svc/sdk'

export const policyMigrations: readonly Migration[] = [
  {
    id: '300-pairing',
    sql: `
      CREATE TABLE channels_pairing_code (
        digest TEXT PRIMARY KEY,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        role TEXT NOT NULL,
        expires_at TEXT NOT NULL
      );
      CREATE TABLE channels_paired (
        id TEXT PRIMARY KEY,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        sender_id TEXT NOT NULL,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        paired_at TEXT NOT NULL,
        UNIQUE (channel, account, sender_id)
      );
    `,
  },
]
