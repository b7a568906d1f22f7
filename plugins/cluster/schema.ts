import * as v from 'valibot'

/** `stopping`: it is asked to stop. */
const memberStates = ['active', 'draining', 'stopping'] as const
export type MemberState = (typeof memberStates)[number]
/** `impaired`: active, were it not for what it lacks. */
export type EffectiveState = MemberState | 'impaired'

/** A row of `cluster_member`. */
export const MemberRow = v.object({
  id: v.string(),
  home_id: v.string(),
  name: v.string(),
  host_name: v.string(),
  address: v.nullable(v.string()),
  /** Where it listens, which a proxy in front of it may hide; `null` until it does, and for earlier versions. */
  listens: v.nullable(v.string()),
  version: v.string(),
  started_at: v.string(),
  /** `unknown`: what another build of svc wrote. The daemon beats and can die as any other. */
  state: v.fallback(v.picklist([...memberStates, 'unknown']), 'unknown'),
  lease_ms: v.number(),
  beats: v.number(),
  /** Plugins of svc that failed there and work in another daemon; `null` of one that lacks none. */
  lacks: v.nullable(v.string()),
})
export type MemberRow = v.InferOutput<typeof MemberRow>

const digests = v.pipe(v.string(), v.parseJson(), v.record(v.string(), v.string()))
export const SectionsRow = v.object({ member: v.string(), sections: digests })
export const KeysRow = v.object({ member: v.string(), keys: digests })

/** What a daemon works with, beside its name. */
export const AgreementRow = v.object({ name: v.string(), value: v.string() })

const ClusterMember = v.object({
  id: v.pipe(v.string(), v.description('Of this run of the daemon.')),
  name: v.string(),
  host_name: v.string(),
  address: v.nullable(v.string()),
  version: v.string(),
  started_at: v.string(),
  state: v.pipe(
    v.picklist(['active', 'draining', 'impaired', 'unknown']),
    v.description(
      '`impaired`: it lacks a plugin that works elsewhere, and takes nothing over. `unknown`: another version of svc ' +
        'wrote what this one does not know; it is not given work.',
    ),
  ),
  self: v.pipe(v.boolean(), v.description('Whether this daemon answers.')),
  seen_secs: v.pipe(v.number(), v.description('How long ago it was last seen to be alive; dead after its lease.')),
  lease_secs: v.number(),
  owned: v.pipe(v.record(v.string(), v.number()), v.description('What it works on, such as `turns`, by kind.')),
  problems: v.pipe(
    v.array(v.string()),
    v.description('What it was to do as the others did and has not done, such as installing a plugin.'),
  ),
  differences: v.pipe(
    v.array(v.string()),
    v.description('Keys of the configuration and plugins that are not as in this daemon.'),
  ),
})
export const ClusterView = v.object({
  shared: v.pipe(v.boolean(), v.description('Whether other daemons can join: on PostgreSQL.')),
  members: v.array(ClusterMember),
})
export type ClusterView = v.InferOutput<typeof ClusterView>

export const Drain = v.optional(
  v.object({
    stop: v.optional(v.pipe(v.boolean(), v.description('Stop the daemon once its requests have ended.')), false),
  }),
  {},
)
export const Changed = v.object({ id: v.string(), state: v.picklist(['active', 'draining']) })
