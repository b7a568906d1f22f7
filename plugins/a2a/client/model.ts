import * as v from 'valibot'
import { readOwnJson } from 'svc/internal'

/** What people and agents are shown of a card: screened, and cut where it is too long. */
export interface CardView {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly provider: string
  readonly endpoints: readonly Endpoint[]
  readonly skills: readonly CardSkill[]
  /** Names of the ways in which it wants callers to prove who they are. */
  readonly security: readonly string[]
  readonly streaming: boolean
  readonly push_notifications: boolean
  readonly signature: CardSignature
  /** What a person should know before trusting it. */
  readonly warnings: readonly string[]
}
export interface Endpoint {
  readonly url: string
  readonly protocol: string
  readonly version: string
}
export interface CardSkill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
}
export interface CardSignature {
  /** `unverified`: it is signed, and its key cannot be had. */
  readonly state: 'none' | 'valid' | 'invalid' | 'unverified'
  /** The keys it names, as `<kid> at <origin>`. */
  readonly keys: readonly string[]
}

const json = <T>() =>
  v.pipe(
    v.string(),
    v.transform((text) => readOwnJson(text) as T),
  )
const integer = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))

export const AgentRow = v.object({
  id: v.string(),
  name: v.string(),
  url: v.string(),
  /** `file`: it stands in the configuration. */
  source: v.picklist(['api', 'file']),
  state: v.picklist(['pending', 'trusted']),
  card: v.nullable(json<unknown>()),
  view: v.nullable(json<CardView>()),
  /** The card that a person trusted. */
  trusted_view: v.nullable(json<CardView>()),
  fingerprint: v.nullable(v.string()),
  discovered_by: v.nullable(v.string()),
  discovered_at: integer,
  checked_at: v.nullable(integer),
  trusted_at: v.nullable(integer),
})
export type ExternalAgent = Readonly<v.InferOutput<typeof AgentRow>>

/** Interface 2.12 and API facts: states of a task in camelCase. */
export const STATES = [
  'submitted',
  'working',
  'inputRequired',
  'authRequired',
  'completed',
  'cancelled',
  'failed',
  'rejected',
] as const
export type SentState = (typeof STATES)[number]
const SETTLED: ReadonlySet<SentState> = new Set(['completed', 'cancelled', 'failed', 'rejected'])
/** Whether nothing comes of it any more. */
export const isSettled = (state: SentState): boolean => SETTLED.has(state)
/** Whether the other side does nothing until it hears from us. */
export const isWaiting = (state: SentState): boolean => state === 'inputRequired' || state === 'authRequired'

export const SentRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  agent_name: v.string(),
  url: v.string(),
  task_id: v.nullable(v.string()),
  context_id: v.nullable(v.string()),
  /** The task of the other side that the message is about. */
  continues: v.nullable(v.string()),
  state: v.picklist(STATES),
  message: v.string(),
  result: v.nullable(v.string()),
  error: v.nullable(v.string()),
  asked_by: v.nullable(v.string()),
  /** Daemons that the message came through, this one included. */
  hops: integer,
  attempts: integer,
  created_at: integer,
  updated_at: integer,
  settled_at: v.nullable(integer),
})
export type SentTask = Readonly<v.InferOutput<typeof SentRow>>
