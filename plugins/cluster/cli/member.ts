import * as v from 'valibot'
import { exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export const Member = v.looseObject({
  id: v.string(),
  name: v.string(),
  host_name: v.string(),
  address: v.nullable(v.string()),
  version: v.string(),
  started_at: v.string(),
  state: v.string(),
  self: v.boolean(),
  seen_secs: v.number(),
  owned: v.record(v.string(), v.number()),
  /** Absent in an earlier version. */
  problems: v.optional(v.array(v.string()), []),
  differences: v.array(v.string()),
})
export type Member = v.InferOutput<typeof Member>
export const Cluster = v.looseObject({ shared: v.boolean(), members: v.array(Member) })
export const Changed = v.looseObject({ id: v.string(), state: v.string() })

/** The daemon with this name or the beginning of this id; the one that answers when none is given. */
export async function findMember(client: DaemonClient, name: string | undefined): Promise<Member> {
  const { members } = await client.call('GET', '/api/cluster', Cluster)
  const found = members.filter((member) =>
    name === undefined ? member.self : member.name === name || member.id.startsWith(name),
  )
  const [only] = found
  if (found.length === 1 && only) return only
  const known = members.map((member) => `${member.name} (${member.id})`).join(', ')
  throw new Failure(
    found.length === 0 ? exits.notFound : exits.usage,
    found.length === 0 ? `no daemon is called "${name}"` : `more than one daemon is called "${name}"`,
    `name one by its id: ${known}`,
  )
}
