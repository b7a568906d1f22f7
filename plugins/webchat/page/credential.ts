import * as v from 'valibot'

/**
 * What opens the daemon: the API key, the token of a sign-in, or the key of this browser as a paired device.
 *
 * Decision: it is kept in `sessionStorage`, in one place and form with the pages of plugins (`pages/kit/credential.js`).
 * Only scripts of this origin in this tab can read it, and they could use it from memory as well: the policy, which runs
 * no script but the daemon's, is what stands against a foreign one. In memory alone each page and each reload asked for
 * the key again, so people had the key itself stored for good.
 */
const Credential = v.object({
  key: v.string(),
  /** Who signed in. */
  name: v.optional(v.string()),
  /** The id of this browser as a paired device. */
  device: v.optional(v.string()),
})
export type Credential = v.InferOutput<typeof Credential>
const Device = v.object({ ...Credential.entries, device: v.string() })
export type DeviceCredential = v.InferOutput<typeof Device>

/** Of this tab, in `sessionStorage`. */
const tabPlace = 'svc.credential'
/** The device that this browser is, in `localStorage`. Never the API key. */
const devicePlace = 'svc.remembered'

/** What this tab was opened with, or else what this browser remembers. */
export function recall(): Credential | undefined {
  return read(() => sessionStorage, tabPlace, Credential) ?? recallDevice()
}
export function recallDevice(): DeviceCredential | undefined {
  const device = read(() => localStorage, devicePlace, Device)
  // Version 0.1 kept the API key itself there.
  if (!device) remove(() => localStorage, devicePlace)
  return device
}

/** For this tab: a reload and the pages of plugins use it. */
export function keep(credential: Credential): void {
  write(() => sessionStorage, tabPlace, credential)
}
/** For every tab of this browser. Whether it is kept: a browser may refuse. */
export function remember(device: DeviceCredential): boolean {
  return write(() => localStorage, devicePlace, device)
}

/** Removes what the daemon refused. */
export function forget(key: string): void {
  if (read(() => sessionStorage, tabPlace, Credential)?.key === key) remove(() => sessionStorage, tabPlace)
  if (recallDevice()?.key === key) remove(() => localStorage, devicePlace)
}
/** The user signed out: neither a credential nor anything they wrote stays in this tab. */
export function forgetAll(): void {
  remove(() => localStorage, devicePlace)
  try {
    sessionStorage.clear()
  } catch {
    /* Where nothing can be kept, nothing is. */
  }
}

/** A function: a browser may refuse even to name its storage. */
type Store = () => Storage

function read<S extends v.GenericSchema>(store: Store, place: string, schema: S): v.InferOutput<S> | undefined {
  try {
    const parsed = v.safeParse(schema, JSON.parse(store().getItem(place) ?? 'null'))
    return parsed.success ? parsed.output : undefined
  } catch {
    return undefined
  } // Storage may be switched off, or hold what somebody else put there.
}
function write(store: Store, place: string, credential: Credential): boolean {
  try {
    store().setItem(place, JSON.stringify(credential))
    return true
  } catch {
    return false
  }
}
function remove(store: Store, place: string): void {
  try {
    store().removeItem(place)
  } catch {
    /* Where nothing can be kept, nothing is. */
  }
}
