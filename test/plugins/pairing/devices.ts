import { startHost } from '../../support/host.ts'
import type { HostOptions, TestHost } from '../../support/host.ts'
import type { ConfigInput } from '../../../core/config/schema.ts'
import type { Json } from '../../support/json.ts'

export const KEY = 'the-key-of-the-operator'
export const operator = { authorization: `Bearer ${KEY}` }
export interface Device {
  readonly id: string
  readonly bearer: { readonly authorization: string }
}

/** A daemon with a key that lets devices be paired. */
export function startPairing(
  pairing: NonNullable<ConfigInput['pairing']> = {},
  options: HostOptions = {},
): Promise<TestHost> {
  return startHost({ ...options, config: { api_key: KEY, ...options.config, pairing: { enabled: true, ...pairing } } })
}
export async function requestCode(host: TestHost): Promise<string> {
  const { status, body } = await host.json('POST', '/api/pairing/request', undefined, operator)
  if (status !== 200) throw new Error(`no code: ${status} ${JSON.stringify(body)}`)
  return body.pairing_code
}
export const complete = (host: TestHost, body: unknown) => host.json('POST', '/api/pairing/complete', body)
export async function pair(host: TestHost, name = 'phone'): Promise<Device> {
  const { status, body } = await complete(host, {
    pairing_code: await requestCode(host),
    display_name: name,
    platform: 'android',
  })
  if (status !== 200) throw new Error(`not paired: ${status} ${JSON.stringify(body)}`)
  return { id: body.device_id, bearer: { authorization: `Bearer ${body.api_key}` } }
}
export const listed = async (host: TestHost): Promise<Json[]> =>
  (await host.json('GET', '/api/pairing/devices', undefined, operator)).body.devices
