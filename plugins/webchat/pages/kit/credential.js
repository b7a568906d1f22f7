// Place and form are those of the chat page (`page/credential.ts`), which says why.

/** Of this tab, in `sessionStorage`: `{ key, name?, device? }`. */
const TAB = 'svc.credential'
/** The device that this browser is, in `localStorage`: `{ key, device }`. Never the API key. */
const DEVICE = 'svc.remembered'

/** What this tab was opened with, or else what this browser remembers. */
export const recall = () => read(() => sessionStorage, TAB) ?? recallDevice()
export function recallDevice() {
  const found = read(() => localStorage, DEVICE)
  if (typeof found?.device === 'string') return found
  // Version 0.1 kept the API key itself there.
  remove(() => localStorage, DEVICE)
  return undefined
}

/** For this tab: a reload and the other pages use it. */
export const keep = (credential) => write(() => sessionStorage, TAB, credential)
/** For every tab of this browser. Whether it is kept: a browser may refuse. */
export const remember = (device) => write(() => localStorage, DEVICE, device)

/** Removes what the daemon refused. */
export function forget(key) {
  if (read(() => sessionStorage, TAB)?.key === key) remove(() => sessionStorage, TAB)
  if (recallDevice()?.key === key) remove(() => localStorage, DEVICE)
}
/** The user signed out: neither a credential nor anything they wrote stays in this tab. */
export function forgetAll() {
  remove(() => localStorage, DEVICE)
  try {
    sessionStorage.clear()
  } catch {
    /* Where nothing can be kept, nothing is. */
  }
}

function read(store, place) {
  try {
    const found = JSON.parse(store().getItem(place) ?? 'null')
    return typeof found?.key === 'string' ? found : undefined
  } catch {
    return undefined // Storage may be switched off, or hold what somebody else put there.
  }
}
function write(store, place, credential) {
  try {
    store().setItem(place, JSON.stringify(credential))
    return true
  } catch {
    return false
  }
}
function remove(store, place) {
  try {
    store().removeItem(place)
  } catch {
    /* Where nothing can be kept, nothing is. */
  }
}
