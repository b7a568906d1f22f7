import { randomUUID } from 'node:crypto'
import type { ChannelAdapter, QrStep } from 'svc/channels'
import { accountKey } from '../accounts/account.ts'
import type { Account } from '../accounts/account.ts'
import { readConfig } from '../accounts/adapter-config.ts'
import { describeMissingModule } from './failure.ts'
import { createLink } from './link.ts'
import type { LinkDeps } from './link.ts'

/** A code that nobody scanned is useless after this long. */
const MAX_SESSION_MS = 300_000
const FIRST_STEP_MS = 30_000

/** A sign-in with a QR code, as far as it has come. */
export interface SignInView {
  readonly id: string
  readonly step: QrStep | undefined
  /** It ended without success: it took too long, was replaced or failed. */
  readonly isExpired: boolean
  readonly message: string
}
interface Session {
  readonly controller: AbortController
  view: SignInView
  readonly firstStep: Promise<void>
}
export interface SignInsDeps {
  readonly link: LinkDeps
  /** Connects the account with what it obtained. */
  readonly authenticated: (account: Account) => void
  readonly background: (work: () => Promise<unknown>) => void
}

/** The sign-ins that are under way, one for each account. */
export class SignIns {
  readonly #deps: SignInsDeps
  readonly #sessions = new Map<string, Session>()
  constructor(deps: SignInsDeps) {
    this.#deps = deps
  }

  /** Replaces one that is under way. Settles with the first code, or with why there is none. */
  async start(account: Account, adapter: ChannelAdapter): Promise<SignInView> {
    const key = accountKey(account.channel, account.id)
    this.#sessions.get(key)?.controller.abort(new Error('another sign-in was started'))
    const first = Promise.withResolvers<void>()
    const session: Session = {
      controller: new AbortController(),
      view: { id: randomUUID(), step: undefined, isExpired: false, message: 'The platform has not answered yet.' },
      firstStep: first.promise,
    }
    this.#sessions.set(key, session)
    this.#deps.background(() => this.#run(account, adapter, session, first.resolve))
    const cancel = this.#deps.link.clock.after(FIRST_STEP_MS, first.resolve)
    await session.firstStep
    cancel()
    return session.view
  }
  /** The newest of an account, or the one with this id. */
  find(channel: string, accountId: string, id: string | undefined): SignInView | undefined {
    const view = this.#sessions.get(accountKey(channel, accountId))?.view
    return id === undefined || view?.id === id ? view : undefined
  }
  close(): void {
    for (const { controller } of this.#sessions.values()) controller.abort(new Error('the plugin is being unloaded'))
    this.#sessions.clear()
  }

  async #run(account: Account, adapter: ChannelAdapter, session: Session, began: () => void): Promise<void> {
    const { link, authenticated } = this.#deps
    const { controller } = session
    const update = (part: Partial<SignInView>): void => {
      session.view = { ...session.view, ...part }
    }
    const cancel = link.clock.after(MAX_SESSION_MS, () =>
      controller.abort(new Error('nobody scanned the code in time')),
    )
    try {
      const steps = adapter.signIn?.(
        createLink(link, account, {
          config: readConfig(adapter, account),
          signal: controller.signal,
          heard: () => undefined,
          receive: () => Promise.reject(new Error('there is no connection: the message is not accepted')),
        }),
      )
      for await (const step of steps ?? []) {
        if (controller.signal.aborted) break
        update({ step, message: messages[step.status] })
        began()
        if (step.status === 'authenticated') break
      }
      if (session.view.step?.status === 'authenticated') authenticated(account)
      else update({ isExpired: true, message: toMessage(controller.signal.reason) })
    } catch (error) {
      update({ isExpired: true, message: toMessage(controller.signal.aborted ? controller.signal.reason : error) })
    } finally {
      began()
      cancel()
      controller.abort(new Error('the sign-in has ended'))
    }
  }
}

const messages = {
  pending: 'Scan the code with the phone.',
  scanned: 'Scanned: confirm it on the phone.',
  authenticated: 'Signed in.',
} as const
function toMessage(reason: unknown): string {
  if (!(reason instanceof Error)) return 'The sign-in ended.'
  return `The sign-in ended: ${describeMissingModule(reason) ?? reason.message}`
}
