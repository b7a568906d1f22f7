import type { Migration } from 'svc/sdk'

export const outboxMigrations: readonly Migration[] = [
  {
    id: '200-outbox',
    sql: `
      CREATE TABLE channels_outbox (
        id TEXT PRIMARY KEY,
        message_id TEXT NOT NULL,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        thread TEXT NOT NULL,
        seq TEXT NOT NULL,
        part INTEGER NOT NULL,
        parts INTEGER NOT NULL,
        kind TEXT NOT NULL,
        payload TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        uncertain INTEGER NOT NULL,
        next_at TEXT,
        platform_id TEXT,
        error TEXT,
        agent_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        created_at TEXT NOT NULL,
        settled_at TEXT
      );
      CREATE INDEX channels_outbox_waiting ON channels_outbox (channel, account, state, seq, part);
      CREATE INDEX channels_outbox_message ON channels_outbox (message_id);
      CREATE INDEX channels_outbox_turn ON channels_outbox (turn_id);
      CREATE INDEX channels_outbox_settled ON channels_outbox (state, settled_at);
    `,
  },
  { id: '201-outbox-agent', sql: 'CREATE INDEX channels_outbox_agent ON channels_outbox (agent_id, created_at)' },
]
