import { commandLine, Refusal, UpstreamFailure } from 'svc/sdk'
import type * as v from 'valibot'
import { advise } from './advice.ts'
import type { Connection, Connections } from './connection.ts'
import type { ProviderState } from './contract.ts'
import { checkProbe } from './driver-events.ts'
import { withoutKey } from './keys.ts'
import type { Tested } from './schema.ts'

const TEST_MS = 30_000

/**
 * Calls the provider once. A failure is returned, not thrown, so that the reason can be shown. `auditCall` writes
 * an entry to the audit log before anything is sent.
 */
export async function testProvider(
  connections: Connections,
  { name, authStatus, envVar, lacks }: ProviderState,
  signal: AbortSignal,
  auditCall: (details: string) => Promise<void>,
): Promise<v.InferOutput<typeof Tested>> {
  if (lacks !== undefined) throw new Refusal('invalid_request', lacks)
  if (authStatus === 'missing')
    throw new Refusal(
      'invalid_request',
      `Provider ${name} has no key: ${commandLine(`providers set-key ${name}`)} stores one${envVar === undefined ? '' : `, or set ${envVar} and restart`}`,
    )
  const started = performance.now()
  let connection: Connection | undefined
  try {
    connection = await connections.open({ provider: name })
    const { entry, client, baseUrl, key } = connection
    const origin = URL.parse(baseUrl)?.origin
    const target = origin === undefined ? name : `${name} at ${origin}`
    await auditCall(`test of provider ${target}, ${key === undefined ? 'without a key' : 'with its key'}`)
    const { model } = checkProbe(name, await entry.use(TEST_MS, (inner) => client.probe(inner), signal))
    return { status: 'ok', provider: name, latency_ms: Math.round(performance.now() - started), model_tested: model }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof UpstreamFailure) && !(error instanceof Refusal)) throw error
    const advised = connection ? advise(error, name, connection, { turns: [] }) : error
    return {
      status: 'error',
      provider: name,
      latency_ms: Math.round(performance.now() - started),
      error: withoutKey(advised instanceof Error ? advised.message : error.message, connection?.key),
    }
  }
}
