import { readFailedBody, Refusal, shortened } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type * as v from 'valibot'
import type { Audit } from '../audit/contract.ts'
import type { Settings } from './config.ts'
import type { Device, Notification, Notified } from './schema.ts'

export interface PushDeps {
  readonly settings: Settings
  readonly devices: readonly Device[]
  readonly audit: Audit
  readonly fetch: Fetch
  readonly signal: AbortSignal
}

/**
 * One message to the service that all devices subscribe to: accepted for all of them or for none. Throws
 * `service_unavailable` when no service is configured.
 */
export async function push(
  { title, message }: v.InferOutput<typeof Notification>,
  { settings, devices, audit, fetch, signal }: PushDeps,
): Promise<v.InferOutput<typeof Notified>> {
  const service = serviceOf(settings)
  if (devices.length === 0) return { ok: true, notified: 0, failed: [] }
  let error: string | undefined
  try {
    await post(fetch, settings, service, { ...service.fields, title, message }, signal)
  } catch (failure) {
    error = failure instanceof Error ? failure.message : String(failure)
  }
  const count = `${devices.length} ${devices.length === 1 ? 'device' : 'devices'}`
  await audit.write({
    event: 'network_access',
    details:
      `notification of ${message.length} characters to ${count} through ${settings.push_provider}: ` +
      (error ?? 'taken'),
  })
  if (error === undefined) return { ok: true, notified: devices.length, failed: [] }
  const reason = error
  return {
    ok: false,
    notified: 0,
    failed: devices.map(({ device_id, display_name }) => ({ device_id, display_name, error: reason })),
  }
}

interface Service {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly fields: object
}
async function post(
  fetch: Fetch,
  { push_provider: name, push_timeout_ms: totalTimeoutMs }: Settings,
  { url, headers }: Service,
  body: object,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal,
    headersTimeoutMs: totalTimeoutMs,
    totalTimeoutMs,
    maxBytes: 65_536,
  })
  if (!response.ok) throw new Error(`${name} answered ${response.status}: ${shortened(await readFailedBody(response))}`)
  await response.bytes()
}

function serviceOf(settings: Settings): Service {
  const missing = (what: string): Refusal =>
    new Refusal('service_unavailable', `${what} under [pairing] in config.toml`)
  const { push_provider: name, ntfy_topic: topic, ntfy_token: token, gotify_url: base, gotify_token: key } = settings
  if (name === 'none') throw missing('Nobody brings notifications: set push_provider to ntfy or gotify')
  if (name === 'ntfy') {
    if (topic === undefined) throw missing('ntfy needs a topic: set ntfy_topic')
    // docs.ntfy.sh/publish/#publish-as-json: the topic is in the body, so that a title may have any characters.
    return {
      url: settings.ntfy_url ?? 'https://ntfy.sh',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      fields: { topic },
    }
  }
  if (base === undefined || key === undefined)
    throw missing('gotify needs a server and a token: set gotify_url and gotify_token')
  // gotify.net/docs/pushmsg
  return { url: `${base.replace(/\/+$/, '')}/message`, headers: { 'x-gotify-key': key }, fields: { priority: 5 } }
}
