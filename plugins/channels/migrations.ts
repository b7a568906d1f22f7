import type { Migration } from 'svc/sdk'
import { inboxMigrations } from './inbox/migrations.ts'
import { outboxMigrations } from './outbox/migrations.ts'
import { policyMigrations } from './policies/migrations.ts'
import { routingMigrations, thinkingMigrations } from './routing/migrations.ts'

/** Append only. Ids by area: 0xx accounts and connections, 1xx inbox, 2xx outbox, 3xx routing and policies. */
export const migrations: readonly Migration[] = [
  {
    id: '001-account',
    sql: `CREATE TABLE channels_account (
      channel TEXT NOT NULL,
      account_id TEXT NOT NULL,
      enabled INTEGER NOT NULL,
      -- JSON without secrets; NULL for an account of the file that was only enabled or disabled here.
      settings TEXT,
      config TEXT,
      -- Names of the fields in the vault, JSON.
      secrets TEXT NOT NULL,
      has_token INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      PRIMARY KEY (channel, account_id)
    );
    CREATE TABLE channels_state (
      channel TEXT NOT NULL,
      account_id TEXT NOT NULL,
      name TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (channel, account_id, name)
    );
    CREATE TABLE channels_lease (
      channel TEXT NOT NULL,
      account_id TEXT NOT NULL,
      holder TEXT NOT NULL,
      -- Milliseconds since 1970.
      expires_at BIGINT NOT NULL,
      PRIMARY KEY (channel, account_id)
    )`,
  },
  {
    // What was a time is a count from now on: no clocks are compared.
    id: '002-lease-beats',
    sql: 'ALTER TABLE channels_lease RENAME COLUMN expires_at TO beats',
  },
  ...inboxMigrations,
  ...outboxMigrations,
  ...policyMigrations,
  ...routingMigrations,
  ...thinkingMigrations,
]
