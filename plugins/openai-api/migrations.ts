import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    // `digest` covers the whole content of the session; null while a turn works in it, or after one failed.
    id: '001-conversation',
    sql: `CREATE TABLE openai_api_conversation (
      session_id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      digest TEXT,
      used_at TEXT NOT NULL
    );
    CREATE INDEX openai_api_conversation_digest ON openai_api_conversation (digest);
    CREATE INDEX openai_api_conversation_used ON openai_api_conversation (used_at);`,
  },
]
