import type { Migration } from 'svc/sdk'

export const routingMigrations: readonly Migration[] = [
  {
    id: '310-routing',
    sql: `
      CREATE TABLE channels_conversation (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        thread TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        started_at TEXT NOT NULL,
        PRIMARY KEY (channel, account, chat, thread, agent_id)
      );
      CREATE INDEX channels_conversation_agent ON channels_conversation (agent_id, channel);
      CREATE TABLE channels_chosen_agent (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        thread TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        PRIMARY KEY (channel, account, chat, thread)
      );
      CREATE TABLE channels_binding (
        id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        match_rule TEXT NOT NULL,
        created_at TEXT NOT NULL
      );
    `,
  },
  {
    id: '311-thread-owner',
    sql: `CREATE TABLE channels_thread_owner (
      channel TEXT NOT NULL,
      account TEXT NOT NULL,
      chat TEXT NOT NULL,
      thread TEXT NOT NULL,
      agent_id TEXT NOT NULL,
      until TEXT NOT NULL,
      PRIMARY KEY (channel, account, chat, thread)
    )`,
  },
]

export const thinkingMigrations: readonly Migration[] = [
  {
    id: '312-thinking',
    sql: `CREATE TABLE channels_thinking (
      channel TEXT NOT NULL,
      account TEXT NOT NULL,
      chat TEXT NOT NULL,
      thread TEXT NOT NULL,
      enabled INTEGER NOT NULL,
      PRIMARY KEY (channel, account, chat, thread)
    )`,
  },
]
