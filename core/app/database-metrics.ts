import type { MetricRegistry } from '../metrics/registry.ts'
import type { Database } from '../storage/database.ts'

/** Figures of the connections to a PostgreSQL server; none on SQLite. */
export function addDatabaseMetrics(metrics: MetricRegistry, database: Database): void {
  const { pool } = database.figures()
  if (!pool) return
  const read = (): NonNullable<typeof pool> => database.figures().pool ?? pool
  metrics.watched('svc_database_connections', 'Connections to the database server, by state.', () => [
    { value: read().open - read().idle, labels: { state: 'busy' } },
    { value: read().idle, labels: { state: 'idle' } },
  ])
  metrics.watched('svc_database_waiting', 'Calls that wait for a connection to the database server.', () => [
    { value: read().waiting },
  ])
  for (const [name, help, value] of [
    ['svc_database_batches_total', 'Transactions and reads.', () => read().batches],
    ['svc_database_statements_total', 'Statements of them.', () => read().statements],
    ['svc_database_round_trips_total', 'Times the database server was waited for.', () => read().roundTrips],
    [
      'svc_database_retries_total',
      'Batches carried out again after a conflict or a lost connection.',
      () => read().retries,
    ],
    [
      'svc_database_unknown_total',
      'Writes of which the database server did not say whether they are committed.',
      () => read().unknown,
    ],
  ] as const)
    metrics.counted(name, help, () => [{ value: value() }])
  const told = () => database.figures().broadcast
  metrics.watched('svc_broadcast_connected', 'Whether messages of other daemons are heard.', () => [
    { value: told()?.connected === true ? 1 : 0 },
  ])
  metrics.counted('svc_broadcast_messages_total', 'Messages between daemons, by what became of them.', () => [
    { value: told()?.sent ?? 0, labels: { state: 'sent' } },
    { value: told()?.heard ?? 0, labels: { state: 'heard' } },
    { value: told()?.dropped ?? 0, labels: { state: 'dropped' } },
    { value: told()?.ignored ?? 0, labels: { state: 'ignored' } },
  ])
  metrics.counted(
    'svc_broadcast_reconnects_total',
    'Times the connection that hears other daemons was made anew.',
    () => [{ value: told()?.reconnects ?? 0 }],
  )
}
