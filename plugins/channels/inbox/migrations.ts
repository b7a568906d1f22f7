import type { Migration } from 'svc/sdk'

export const inboxMigrations: readonly Migration[] = [
  {
    id: '100-inbox',
    sql: `
      CREATE TABLE channels_inbox (
        id TEXT PRIMARY KEY,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        message_id TEXT NOT NULL,
        conversation TEXT NOT NULL,
        lane TEXT NOT NULL,
        standing TEXT NOT NULL,
        message TEXT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        next_at TEXT,
        reason TEXT,
        agent_id TEXT NOT NULL,
        received_at TEXT NOT NULL,
        settled_at TEXT,
        UNIQUE (channel, account, message_id)
      );
      CREATE INDEX channels_inbox_lane ON channels_inbox (lane, state, id);
      CREATE INDEX channels_inbox_state ON channels_inbox (state, settled_at);
    `,
  },
  {
    id: '101-owner',
    sql: `
      -- An instance that works on messages counts up its row: one that stands still is dead.
      CREATE TABLE channels_owner (
        id TEXT PRIMARY KEY,
        home TEXT NOT NULL,
        beats BIGINT NOT NULL
      );
    `,
  },
  {
    id: '102-queue',
    sql: `
      DROP INDEX channels_inbox_lane;
      ALTER TABLE channels_inbox RENAME COLUMN lane TO queue;
      CREATE INDEX channels_inbox_queue ON channels_inbox (queue, state, id);
    `,
  },
  {
    id: '103-open',
    // A message changes its state twice within a moment: neither index has to follow it.
    sql: `
      DROP INDEX channels_inbox_queue;
      DROP INDEX channels_inbox_state;
      CREATE INDEX channels_inbox_open ON channels_inbox (queue, id) WHERE state IN ('pending', 'processing');
      CREATE INDEX channels_inbox_settled ON channels_inbox (state, settled_at) WHERE settled_at IS NOT NULL;
    `,
  },
]
