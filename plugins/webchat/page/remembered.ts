import * as v from 'valibot'

/** The credential stored on this device, only at the user's request. Only scripts of this page can read it. */
const place = 'svc.remembered'
const Remembered = v.object({ key: v.string(), name: v.optional(v.string()) })
export type Remembered = v.InferOutput<typeof Remembered>

export function recall(): Remembered | undefined {
  try {
    const parsed = v.safeParse(Remembered, JSON.parse(localStorage.getItem(place) ?? 'null'))
    return parsed.success ? parsed.output : undefined
  } catch {
    return undefined
  } // Storage may be switched off, or hold what somebody else put there.
}
/** Whether it is kept: a browser may refuse. */
export function remember(what: Remembered): boolean {
  try {
    localStorage.setItem(place, JSON.stringify(what))
    return true
  } catch {
    return false
  }
}
export function forget(): void {
  try {
    localStorage.removeItem(place)
  } catch {
    /* Where nothing can be kept, nothing is. */
  }
}
