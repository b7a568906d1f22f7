import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { Link } from './config.ts'

/** Source: https://spec.matrix.org/latest/client-server-api/#post_matrixclientv3joinroomidoralias (November 2026) */
const Joined = v.object({ room_id: v.string() })
const Failure = v.object({ errcode: v.optional(v.string(), ''), error: v.optional(v.string(), '') })

/** Joins the rooms of the configuration; those it is in already stay as they are. Returns what the operator should know. */
export async function joinRooms(link: Link): Promise<readonly string[]> {
  const { token, base_url: base, rooms } = link.config
  const client = new ApiClient(link, {
    system: 'gitter',
    authenticate: () => ({ authorization: `Bearer ${token}` }),
    findError({ ok, body }) {
      const failure = v.safeParse(Failure, body)
      return ok || !failure.success ? undefined : { message: `${failure.output.errcode}: ${failure.output.error}` }
    },
    secrets: [token],
    refuseRedirects: true,
  })
  const warnings: string[] = []
  for (const room of rooms) {
    const url = `${trimSlashes(base)}/_matrix/client/v3/join/${encodeURIComponent(room)}`
    try {
      await client.json(url, { json: {} }, Joined, 'the joined room')
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.retry === 'later' || error.reason === 'auth') throw error
      // One room that is closed to the bot does not keep it from the others.
      link.log.warn(`the bot cannot join ${room}`, { error })
      warnings.push(`the bot cannot join ${room}: ${error.message}`)
    }
  }
  return warnings
}
