import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-trigger',
    sql: `CREATE TABLE triggers_trigger (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      -- Who is asked; the agent when absent.
      target_agent_id TEXT,
      -- JSON, as are delivery and labels.
      pattern TEXT NOT NULL,
      prompt_template TEXT NOT NULL,
      enabled INTEGER NOT NULL,
      fire_count BIGINT NOT NULL,
      -- 0: no limit.
      max_fires BIGINT NOT NULL,
      -- What the configuration says when absent.
      cooldown_secs INTEGER,
      session_mode TEXT,
      workflow_id TEXT,
      delivery TEXT NOT NULL,
      -- The entry of the audit trail after which events count.
      since BIGINT NOT NULL,
      -- Why it is disabled.
      reason TEXT,
      -- The agent that made it.
      created_by TEXT,
      labels TEXT NOT NULL,
      -- Milliseconds since 1970, as all times here.
      last_fired BIGINT,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL
    )`,
  },
  { id: '002-trigger-agent', sql: 'CREATE INDEX triggers_trigger_agent ON triggers_trigger (agent_id)' },
  {
    id: '003-cursor',
    sql: `CREATE TABLE triggers_cursor (
      id INTEGER NOT NULL PRIMARY KEY,
      -- All entries of the audit trail up to this one were read.
      position BIGINT NOT NULL,
      -- Rises with every change that somebody makes to a trigger.
      generation BIGINT NOT NULL
    )`,
  },
  { id: '004-cursor-row', sql: 'INSERT INTO triggers_cursor (id, position, generation) VALUES (1, 0, 0)' },
  {
    id: '005-firing',
    sql: `CREATE TABLE triggers_firing (
      -- Of the job of the queue and of a run of a workflow too.
      id TEXT NOT NULL PRIMARY KEY,
      trigger_id TEXT NOT NULL,
      event_id TEXT NOT NULL,
      -- The number of its entry in the audit trail.
      position BIGINT NOT NULL,
      event_kind TEXT NOT NULL,
      event_text TEXT NOT NULL,
      labels TEXT NOT NULL,
      -- Who is asked.
      agent_id TEXT NOT NULL,
      turn_id TEXT NOT NULL,
      depth INTEGER NOT NULL,
      state TEXT NOT NULL,
      reason TEXT,
      detail TEXT,
      result TEXT,
      error TEXT,
      event_at BIGINT NOT NULL,
      created_at BIGINT NOT NULL,
      ended_at BIGINT
    )`,
  },
  {
    id: '006-firing-event',
    sql: 'CREATE UNIQUE INDEX triggers_firing_event ON triggers_firing (trigger_id, event_id)',
  },
  { id: '007-firing-order', sql: 'CREATE INDEX triggers_firing_order ON triggers_firing (trigger_id, position)' },
  { id: '008-firing-turn', sql: 'CREATE INDEX triggers_firing_turn ON triggers_firing (turn_id)' },
  {
    id: '009-cooldown',
    sql: `CREATE TABLE triggers_cooldown (
      trigger_id TEXT NOT NULL,
      -- Of the kind of event and what it is about.
      event_key TEXT NOT NULL,
      -- When it happened that the trigger fired for last.
      event_at BIGINT NOT NULL,
      PRIMARY KEY (trigger_id, event_key)
    )`,
  },
  // As JSON. Without it, that of created_by alone.
  { id: '010-trigger-behalf', sql: 'ALTER TABLE triggers_trigger ADD COLUMN on_behalf TEXT' },
  // Daemons that what asked for it came through.
  { id: '011-trigger-hops', sql: 'ALTER TABLE triggers_trigger ADD COLUMN hops INTEGER NOT NULL DEFAULT 0' },
]
