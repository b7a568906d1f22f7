import * as v from 'valibot'
import { effects } from '../../auth/authority.ts'

const strings = v.optional(v.array(v.string()))
/** What the process says of the definition of its plugin. `checkDefinition` looks at the rest. */
export const Description = v.object({
  name: v.string(),
  version: v.string(),
  apiVersion: v.optional(v.string()),
  uses: v.optional(v.record(v.string(), v.unknown())),
  migrations: v.optional(v.array(v.object({ id: v.string(), sql: v.string() }))),
  pages: v.optional(v.array(v.record(v.string(), v.unknown()))),
  reload: v.optional(v.picklist(['overlap', 'exclusive'])),
  outbound: v.optional(v.picklist(['operator', 'both'])),
  hooks: v.optional(v.array(v.object({ id: v.string(), kind: v.picklist(['notify', 'gate', 'transform']) }))),
  /** Services by the name the plugin uses for them; only those whose contract can cross. */
  requires: v.optional(v.record(v.string(), v.object({ id: v.string() }))),
  /** As `describeSchema` says it: which keys there are, and which are secret. */
  config: v.unknown(),
  /** What the plugin needs and a process of its own cannot have. */
  unsupported: v.array(v.string()),
})
export type Description = v.InferOutput<typeof Description>

const Key = v.pipe(v.string(), v.maxLength(512))
const Status = v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599))
/** An error of the plugin's own. It is answered as an error, whatever its process says. */
export const ErrorRow = v.object({
  code: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,63}$/)),
  status: v.pipe(Status, v.minValue(400)),
  format: v.picklist(['flat', 'coded']),
  meaning: v.string(),
})
export const Registration = v.variant('kind', [
  v.object({
    kind: v.literal('route'),
    key: Key,
    method: v.picklist(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    path: v.string(),
    summary: v.string(),
    auth: v.picklist(['public', 'bearer']),
    effect: v.optional(v.picklist(effects)),
    cost: v.number(),
    status: v.optional(v.picklist([200, 201, 202, 204, 302])),
    description: v.optional(v.string()),
    crossSite: v.optional(v.boolean()),
    produces: v.optional(v.string()),
    idempotent: v.optional(v.boolean()),
    keepsAnswer: v.optional(v.boolean()),
    hasRecall: v.boolean(),
    hasBody: v.boolean(),
    feed: v.optional(v.literal(true)),
    errors: v.optional(v.array(ErrorRow)),
    answers: v.array(
      v.object({ status: Status, description: v.string(), json: v.boolean(), type: v.optional(v.string()) }),
    ),
    /** Bytes of a raw body. */
    rawBytes: v.optional(v.number()),
  }),
  v.object({
    kind: v.literal('tool'),
    key: Key,
    name: v.string(),
    title: v.optional(v.string()),
    description: v.string(),
    outputSchema: v.optional(v.record(v.string(), v.unknown())),
    risk: v.picklist(['read', 'write', 'execute']),
    effect: v.optional(v.picklist(effects)),
    polls: v.optional(v.boolean()),
    needs: v.optional(v.string()),
    timeoutSecs: v.optional(v.number()),
    labels: strings,
    refuses: strings,
    input: v.record(v.string(), v.unknown()),
  }),
  v.object({
    kind: v.literal('hook'),
    key: Key,
    id: v.string(),
    hook: v.picklist(['notify', 'gate', 'transform']),
  }),
  v.object({
    kind: v.literal('job'),
    key: Key,
    label: v.string(),
    cron: v.optional(v.string()),
    ms: v.optional(v.number()),
  }),
  v.object({
    kind: v.literal('metric'),
    key: Key,
    type: v.picklist(['counter', 'gauge', 'histogram']),
    name: v.string(),
    help: v.string(),
    bounds: v.optional(v.array(v.number())),
  }),
])
export type Registration = v.InferOutput<typeof Registration>
export type RouteRegistration = Extract<Registration, { kind: 'route' }>
