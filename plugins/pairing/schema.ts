import * as v from 'valibot'
import { line, secret } from 'svc/sdk'

const text = (chars: number) =>
  v.pipe(
    v.string(),
    v.maxLength(chars),
    v.check((value) => value.isWellFormed() && !value.includes('\0'), 'must be well-formed Unicode without NUL'),
  )
const code = v.optional(v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(128)))

export const PairingState = v.object({ enabled: v.boolean() })
export const Requested = v.object({
  pairing_code: v.string(),
  /** The same, as existing clients name it. */
  token: v.string(),
  qr_uri: v.string(),
  expires_at: v.string(),
})
/** The code is the interface's only field; existing clients call it `token`. */
export const Completion = v.pipe(
  v.object({
    pairing_code: code,
    code,
    token: code,
    display_name: v.optional(line(128), 'device'),
    platform: v.optional(line(64), 'unknown'),
    // Decision: accepted and not stored. Neither ntfy nor gotify uses such device tokens, and a secret without a use is
    // a risk.
    push_token: v.optional(secret(v.pipe(v.string(), v.maxLength(4096)))),
  }),
  v.check(
    ({ pairing_code: one, code: two, token: three }) => (one ?? two ?? three) !== undefined,
    'pairing_code: is needed',
  ),
)
export const Paired = v.object({
  device_id: v.string(),
  display_name: v.string(),
  platform: v.string(),
  paired_at: v.string(),
  /** The device's key. It is shown here and never again. */
  api_key: v.string(),
})

export const Notification = v.object({
  title: v.optional(line(250), 'svc'),
  message: v.pipe(
    text(4096),
    v.check((message) => message.trim() !== '', 'must not be empty'),
  ),
})
const count = v.pipe(v.number(), v.integer())
export const Notified = v.object({
  ok: v.boolean(),
  /** Devices the notification is on its way to. */
  notified: count,
  failed: v.array(v.object({ device_id: v.string(), display_name: v.string(), error: v.string() })),
})

const row = { display_name: v.string(), platform: v.string(), paired_at: v.string(), last_seen: v.string() }
export const Device = v.object({ device_id: v.string(), ...row })
export type Device = v.InferOutput<typeof Device>
export const DeviceList = v.object({ devices: v.array(Device), total: count })
export const DeviceParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid device ID')) })
/** Something that a device began; `agent_id` is empty when it is no agent's. */
const Work = v.object({
  kind: v.picklist(['agent', 'schedule', 'task', 'trigger', 'turn', 'workflow_run']),
  id: v.string(),
  name: v.string(),
  agent_id: v.string(),
})
export const Removed = v.object({
  ok: v.literal(true),
  device_id: v.string(),
  /** What it and its turns made or changed that stays, the newest last; some of it may be gone by now. */
  effects: v.array(v.object({ event: v.string(), agent_id: v.string(), details: v.string(), timestamp: v.string() })),
  effects_total: count,
  /** What of it was ended, with `effects=stop`. */
  stopped: v.array(Work),
  /** What of it goes on. */
  staying: v.array(Work),
})
export const Removal = v.object({ effects: v.optional(v.picklist(['keep', 'stop']), 'keep') })

/** `proof`: see `Devices`. */
export const DeviceRow = v.object({ id: v.string(), digest: v.string(), proof: v.nullable(v.string()), ...row })
export type DeviceRow = v.InferOutput<typeof DeviceRow>
export const CodeRow = v.object({ id: v.string(), digest: v.string(), expires_at: v.string() })
export type CodeRow = v.InferOutput<typeof CodeRow>
