import { eventually } from './eventually.ts'
import type { TestHost } from './host.ts'
import { createTestDatabase } from './postgres-server.ts'
import type { TestDatabase } from './postgres-server.ts'

/** Two daemons in this process on one PostgreSQL database, which is dropped at the end. */
export interface TwoDaemons extends AsyncDisposable {
  readonly database: TestDatabase
  readonly one: TestHost
  readonly two: TestHost
}

/** `start` is called for the first daemon, and for the second one when that serves. */
export async function openTwoDaemons(
  start: (database: TestDatabase, name: 'one' | 'two') => Promise<TestHost>,
): Promise<TwoDaemons> {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await createTestDatabase())
  const one = opened.use(await start(database, 'one'))
  const two = opened.use(await start(database, 'two'))
  const whole = opened.move()
  return { database, one, two, [Symbol.asyncDispose]: () => whole.disposeAsync() }
}

/**
 * Makes two daemons meet: takes a lock with a statement of SQL, and gives it up when so many statements wait for locks.
 * Settles when it has the lock; `met` settles when they go on.
 */
export async function letMeet(
  database: TestDatabase,
  lock: string,
  waiting = 2,
): Promise<{ readonly met: Promise<unknown> }> {
  const met = database.query(`DO $$ BEGIN
    ${lock};
    FOR attempt IN 1..6000 LOOP
      PERFORM pg_stat_clear_snapshot();
      IF (SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock') >= ${waiting} THEN RETURN; END IF;
      PERFORM pg_sleep(0.01);
    END LOOP;
    RAISE EXCEPTION 'they do not meet';
  END $$`)
  met.catch(() => undefined /* It is awaited later. */)
  const holds = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
  await eventually(async () => {
    if ((await database.query(holds)) !== '1') throw new Error('the lock is not held yet')
  })
  return { met }
}
