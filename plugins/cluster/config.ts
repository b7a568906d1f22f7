import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

/** The longest lease. */
export const MAX_LEASE_SECS = 3_600

export const ClusterConfig = fileOnly(
  'says when the other daemons on a database take over what this one does',
  v.object({
    lease_secs: fields.integer(
      'Seconds after which the other daemons on the database take over what this one did, when it has died.',
      15,
      5,
      MAX_LEASE_SECS,
      { restart: true },
    ),
    name: fields.text('What this daemon is called where several are listed; the name of its machine by default.', {
      restart: true,
    }),
    address: fields.text(
      'Where this daemon is reached by its operator, such as 10.0.0.5:4545; where it listens by default.',
      { restart: true },
    ),
    notice_secs: fields.integer(
      'Seconds that a daemon which is to stop goes on answering while GET /api/ready says 503, so that a load ' +
        'balancer sends nothing more. At most plugins.drain_ms; not for the only daemon on a database.',
      3,
      0,
      300,
      { restart: true },
    ),
    stop_wait_secs: fields.integer(
      'Seconds that a daemon which is drained to be stopped waits for answers that are being written; then they end ' +
        'with an error.',
      300,
      0,
      86_400,
    ),
  }),
)
export type ClusterConfig = v.InferOutput<typeof ClusterConfig>
