import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-canvas',
    // frame_key signs addresses of the frame that a page shows.
    sql: `CREATE TABLE canvas_shown (
      id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, session_id TEXT NOT NULL, turn_id TEXT NOT NULL, title TEXT NOT NULL,
      html TEXT NOT NULL, frame_key TEXT NOT NULL, created_at TEXT NOT NULL
    );
    CREATE INDEX canvas_shown_session ON canvas_shown (session_id, created_at);
    CREATE INDEX canvas_shown_agent ON canvas_shown (agent_id);`,
  },
  // Order in the session: several are made in one millisecond, and their ids have no order.
  { id: '002-position', sql: 'ALTER TABLE canvas_shown ADD COLUMN position INTEGER NOT NULL DEFAULT 0' },
]
