import * as v from 'valibot'
import { exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export const Device = v.looseObject({
  device_id: v.string(),
  display_name: v.string(),
  platform: v.string(),
  paired_at: v.string(),
  last_seen: v.string(),
})
export type Device = v.InferOutput<typeof Device>
const DeviceList = v.looseObject({ devices: v.array(Device), total: v.number() })

export const listDevices = (client: DaemonClient): Promise<v.InferOutput<typeof DeviceList>> =>
  client.call('GET', '/api/pairing/devices', DeviceList)

/** A device by its id, by how its id begins or by its name. Throws a `Failure` that names those there are. */
export async function requireDevice(client: DaemonClient, idOrName: string): Promise<Device> {
  const { devices } = await listDevices(client)
  const exact = devices.find(({ device_id: id }) => id === idOrName)
  if (exact) return exact
  const named = devices.filter(({ display_name: name }) => name === idOrName)
  const found =
    named.length > 0 ? named : idOrName === '' ? [] : devices.filter(({ device_id: id }) => id.startsWith(idOrName))
  if (found[0] && found.length === 1) return found[0]
  const names = (some: readonly Device[]): string =>
    some.map(({ display_name: name, device_id: id }) => `${name} (${id})`).join(', ')
  if (found.length > 1)
    throw new Failure(exits.usage, `"${idOrName}" is ${found.length} devices`, `give the id of one: ${names(found)}`)
  throw new Failure(
    exits.notFound,
    `there is no device "${idOrName}"`,
    devices.length === 0 ? 'no device is paired' : `there are: ${names(devices)}`,
  )
}
