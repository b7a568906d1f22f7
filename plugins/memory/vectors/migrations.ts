import type { Migration } from 'svc/sdk'

/**
 * The signs of the numbers of a vector, a bit each, say which few vectors are near. On SQLite those of many memories lie
 * in one row, so that a search reads few rows; triggers empty the place of a vector that goes or changes, whoever does
 * that. PostgreSQL counts bits by itself.
 */
export const vectorMigrations: readonly Migration[] = [
  {
    id: '052-vector-model',
    sql: 'CREATE INDEX memory_vector_model ON memory_vector (agent_id, model)',
  },
  {
    // Without a place, or signs on PostgreSQL: what an older version wrote, and what was written a moment ago.
    // `place`: 256 times the number of the row of `memory_sign`, and where it is in that.
    id: '053-signs',
    sql: `ALTER TABLE memory_vector ADD COLUMN place INTEGER;
    CREATE UNIQUE INDEX memory_vector_place ON memory_vector (place);
    CREATE INDEX memory_vector_unplaced ON memory_vector (memory_id) WHERE place IS NULL;
    CREATE TABLE memory_sign (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      agent_id TEXT NOT NULL,
      model TEXT NOT NULL,
      -- Grows with each change, so that a copy in memory is known to be old.
      version INTEGER NOT NULL,
      -- Places that are empty, of 256.
      free INTEGER NOT NULL,
      places BLOB NOT NULL
    );
    CREATE INDEX memory_sign_agent ON memory_sign (agent_id, model, free, version);
    CREATE TRIGGER memory_vector_deleted AFTER DELETE ON memory_vector WHEN old.place IS NOT NULL BEGIN
      UPDATE memory_sign SET version = version + 1, free = free + 1,
        places = CAST(substr(places, 1, (old.place % 256) * (length(places) / 256)) || zeroblob(length(places) / 256)
          || substr(places, (old.place % 256 + 1) * (length(places) / 256) + 1) AS BLOB)
      WHERE id = old.place / 256;
    END;
    CREATE TRIGGER memory_vector_moved AFTER UPDATE OF place ON memory_vector
    WHEN old.place IS NOT NULL AND new.place IS NOT old.place BEGIN
      UPDATE memory_sign SET version = version + 1, free = free + 1,
        places = CAST(substr(places, 1, (old.place % 256) * (length(places) / 256)) || zeroblob(length(places) / 256)
          || substr(places, (old.place % 256 + 1) * (length(places) / 256) + 1) AS BLOB)
      WHERE id = old.place / 256;
    END`,
    // `place` has no meaning there; the rows of a database that was copied have it.
    postgresql: `ALTER TABLE memory_vector ADD COLUMN place BIGINT;
    ALTER TABLE memory_vector ADD COLUMN signs BIT VARYING;
    CREATE INDEX memory_vector_unplaced ON memory_vector (memory_id) WHERE signs IS NULL`,
  },
]
