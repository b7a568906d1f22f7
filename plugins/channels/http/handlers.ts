import type { Configuration as DaemonConfiguration } from 'svc/internal'
import type { Logger, PluginCredentials } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Account } from '../accounts/account.ts'
import type { LinkDeps } from '../connections/link.ts'
import type { SignIns } from '../connections/sign-ins.ts'
import type { Messaging } from '../messaging.ts'
import { accountHandlers } from './account-handlers.ts'
import { bindingHandlers } from '../routing/binding-handlers.ts'
import { channelHandlers } from './channel-handlers.ts'
import { messageHandlers } from './message-handlers.ts'
import { pairingHandlers } from '../policies/pairing-handlers.ts'
import { qrHandlers } from './qr-handlers.ts'
import type { ViewDeps } from './views.ts'
import { webhookHandler } from './webhook-handler.ts'

export interface HandlerDeps extends ViewDeps {
  readonly agents: Pick<Agents, 'find' | 'findByName' | 'list'>
  readonly messaging: Pick<Messaging, 'inbox' | 'outbox' | 'pairing' | 'bindings'>
  readonly configuration: DaemonConfiguration
  readonly credentials: Pick<PluginCredentials, 'checkAttempts' | 'failed'>
  readonly link: LinkDeps
  readonly signIns: SignIns
  readonly probeMs: number
  /** Requests that the platforms may send to one account. */
  readonly webhooksPerMinute: number
  /** Puts a message into the outbox. */
  readonly send: (account: Account, chatId: string, text: string, id: string) => Promise<void>
  /** The name under which a channel is known. Throws `channel_not_found`. */
  readonly channelName: (given: string) => string
  /** Whether there is an account or a message of a channel, also of one whose plugin was removed. */
  readonly hasRows: (channel: string) => Promise<boolean>
  /** Runs work that unloading waits for and the caller does not. */
  readonly background: (work: () => Promise<unknown>) => void
  readonly log: Logger
}

/** What the routes do: loaded with the first request. */
export function createHandlers(deps: HandlerDeps) {
  return {
    ...channelHandlers(deps),
    ...accountHandlers(deps),
    ...qrHandlers(deps),
    ...messageHandlers(deps),
    ...pairingHandlers(deps),
    ...bindingHandlers(deps),
    receiveWebhook: webhookHandler(deps),
  }
}
export type Handlers = ReturnType<typeof createHandlers>
