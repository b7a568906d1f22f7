import type { Migration } from 'svc/sdk'

export const graphMigrations: readonly Migration[] = [
  {
    // `user_id` is empty for the owner of the daemon.
    id: '030-entity',
    sql: `CREATE TABLE memory_entity (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      user_id TEXT NOT NULL,
      -- The name in lower case, without signs: by it an entity is found.
      name_key TEXT NOT NULL,
      name TEXT NOT NULL,
      entity_type TEXT NOT NULL,
      -- JSON.
      properties TEXT NOT NULL,
      -- Whether somebody made it by itself, and not only a relation.
      is_made INTEGER NOT NULL,
      created_at TEXT NOT NULL
    );
    CREATE UNIQUE INDEX memory_entity_name ON memory_entity (agent_id, user_id, name_key)`,
  },
  {
    // `memory_id` is empty where the relation comes from no memory: each origin has a row of its own.
    id: '032-relation',
    sql: `CREATE TABLE memory_relation (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      user_id TEXT NOT NULL,
      source_id TEXT NOT NULL,
      relation TEXT NOT NULL,
      target_id TEXT NOT NULL,
      memory_id TEXT NOT NULL,
      confidence REAL NOT NULL,
      -- JSON.
      properties TEXT NOT NULL,
      labels TEXT NOT NULL,
      created_at TEXT NOT NULL
    );
    CREATE UNIQUE INDEX memory_relation_once
      ON memory_relation (agent_id, user_id, source_id, relation, target_id, memory_id)`,
  },
  { id: '034-relation-target', sql: 'CREATE INDEX memory_relation_target ON memory_relation (target_id)' },
  { id: '035-relation-memory', sql: 'CREATE INDEX memory_relation_memory ON memory_relation (memory_id)' },
  {
    id: '036-use',
    sql: `CREATE TABLE memory_use (
      turn_id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      user_id TEXT NOT NULL,
      -- JSON.
      memory_ids TEXT NOT NULL,
      created_at TEXT NOT NULL
    )`,
  },
  { id: '037-use-agent', sql: 'CREATE INDEX memory_use_agent ON memory_use (agent_id)' },
  { id: '038-use-created', sql: 'CREATE INDEX memory_use_created ON memory_use (created_at)' },
  {
    // Relations of memories that were forgotten by a version that deleted them later, or did not come to it.
    id: '039-relation-forgotten',
    sql: `DELETE FROM memory_relation WHERE memory_id <> ''
        AND NOT EXISTS (SELECT 1 FROM memory_entry WHERE memory_entry.id = memory_relation.memory_id);
      DELETE FROM memory_entity WHERE is_made = 0
        AND id NOT IN (SELECT source_id FROM memory_relation UNION SELECT target_id FROM memory_relation)`,
  },
]
