import type { AgentChat } from './agent-chat.ts'
import { ApiError, explain } from './api.ts'
import type { Api } from './api.ts'
import { Observable } from './observable.ts'
import type { SessionItem } from './wire.ts'

/** How long a deletion can be undone. */
const UNDO_MS = 10_000

export interface Deletion {
  readonly chat: AgentChat
  readonly session: SessionItem
  readonly wasShown: boolean
  /** What the daemon refused. */
  readonly problem?: string
}

/**
 * The deletion of a conversation that can still be undone. It is sent when its notice ends, when another conversation is
 * deleted, and when the page is left.
 */
export class Deletions {
  readonly pending = new Observable<Deletion | undefined>(undefined)
  readonly #api: Api
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(api: Api) {
    this.#api = api
    window.addEventListener('pagehide', () => {
      const pending = this.#take()
      // A page that is gone cannot show a problem: the conversation is then still there.
      if (pending) this.#api.removeSession(pending.session.id, { outlivesPage: true }).catch(onlyRefusals)
    })
  }

  /** A conversation in view is left for a new one. Throws what the daemon refused. */
  async add(chat: AgentChat, session: SessionItem): Promise<void> {
    await this.send()
    const wasShown = session.id === chat.place.value.shown
    if (wasShown) await chat.startNew()
    this.pending.set({ chat, session, wasShown })
    this.resume()
  }
  async undo(): Promise<void> {
    const pending = this.#take()
    if (!pending?.wasShown) return
    try {
      await pending.chat.open(pending.session.id)
    } catch (error) {
      onlyRefusals(error)
      this.pending.set({ ...pending, problem: `It is not deleted, and could not be opened: ${explain(error)}` })
    }
  }
  dismiss(): void {
    this.#take()
  }
  /** The time to undo stands still while somebody is about to. */
  hold(): void {
    clearTimeout(this.#timer)
  }
  resume(): void {
    clearTimeout(this.#timer)
    if (this.pending.value && this.pending.value.problem === undefined)
      this.#timer = setTimeout(() => void this.send(), UNDO_MS)
  }

  async send(): Promise<void> {
    const pending = this.#take()
    if (!pending) return
    const { chat, session } = pending
    chat.sessions.update((listed) => listed.filter(({ id }) => id !== session.id))
    try {
      await this.#api.removeSession(session.id)
    } catch (error) {
      onlyRefusals(error)
      // Somebody else may have deleted it.
      if (!(error instanceof ApiError && error.status === 404))
        this.pending.set({ ...pending, problem: `It could not be deleted: ${explain(error)}` })
    }
    await chat.listSessions()
  }

  #take(): Deletion | undefined {
    clearTimeout(this.#timer)
    const pending = this.pending.value
    this.pending.set(undefined)
    return pending?.problem === undefined ? pending : undefined
  }
}

function onlyRefusals(error: unknown): void {
  if (!(error instanceof ApiError)) throw error
}
