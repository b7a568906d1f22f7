import * as v from 'valibot'
import { Observable } from './observable.ts'

/**
 * The pinned conversations, kept on this device: the daemon keeps one label for a session, which is its name, and the
 * keys and values of an agent are for the agent to read.
 */
const place = 'svc.pinned'
const Stored = v.array(v.string())
/** The oldest pins go first: what is pinned in a browser may long be deleted in the daemon. */
const maxKept = 200

/** Shared by all tabs. */
export class Pins extends Observable<ReadonlySet<string>> {
  constructor() {
    super(new Set(read()))
    // Other tabs of this browser.
    window.addEventListener('storage', ({ key }) => {
      if (key === place || key === null) this.set(new Set(read()))
    })
  }
  toggle(sessionId: string): void {
    const pinned = new Set(this.value)
    if (!pinned.delete(sessionId)) pinned.add(sessionId)
    this.#keep(pinned)
  }
  /** The user signed out: none of their data stays on this device. */
  forget(): void {
    this.#keep(new Set())
  }
  #keep(pinned: ReadonlySet<string>): void {
    this.set(pinned)
    try {
      if (pinned.size === 0) localStorage.removeItem(place)
      else localStorage.setItem(place, JSON.stringify([...pinned].slice(-maxKept)))
    } catch {
      /* Where nothing can be kept, pins last as long as the page is open. */
    }
  }
}

function read(): readonly string[] {
  try {
    const parsed = v.safeParse(Stored, JSON.parse(localStorage.getItem(place) ?? '[]'))
    return parsed.success ? parsed.output : []
  } catch {
    return []
  } // Storage may be switched off, or hold what somebody else put there.
}
