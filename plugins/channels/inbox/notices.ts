import { stableId } from 'svc/internal'
import type { ChannelAdapter, InboundMessage } from 'svc/channels'
import { isObject } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Approval } from '../../approvals/contract.ts'
import type { Account, FindAccount } from '../accounts/account.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { destinationOf } from './message-handler.ts'
import { deliveryKey } from './schema.ts'
import type { InboxRow } from './schema.ts'
import type { InboxStore } from './store.ts'

export interface NoticesDeps {
  readonly outbox: Outbox
  readonly inbox: Pick<InboxStore, 'find'>
  readonly account: FindAccount
  readonly adapter: (channel: string) => Promise<ChannelAdapter | undefined>
}

/** What the daemon itself says in a chat. Each thing is said once, and nothing on a public platform. */
export class Notices {
  readonly #deps: NoticesDeps
  constructor(deps: NoticesDeps) {
    this.#deps = deps
  }

  async tell(account: Account, adapter: ChannelAdapter, message: InboundMessage, text: string): Promise<void> {
    await this.#deps.outbox.send({
      id: stableId('notice', account.channel, account.id, deliveryKey(message)),
      kind: 'notice',
      account,
      capabilities: adapter.capabilities,
      to: destinationOf(message),
      text,
    })
  }
  /** Statements that tell the sender of a message that nobody works on it any more. */
  async giveUp(row: InboxRow): Promise<readonly Statement[]> {
    const origin = await this.#origin(row)
    if (!origin) return []
    return this.#deps.outbox.add({
      ...origin,
      id: stableId('given up', row.id),
      kind: 'notice',
      text: 'Your message could not be answered and was put aside. The owner of this bot can see why.',
    })
  }
  /** Asks in the chat that a turn was asked for. The answer is for exactly this call. */
  async askForApproval(approval: Approval): Promise<void> {
    const row = approval.turnId === '' ? undefined : await this.#deps.inbox.find(approval.turnId)
    const origin = row && (await this.#origin(row))
    if (!origin) return
    const { id, agentName, intent, summary, risk, form } = approval
    const fields = (form?.fields ?? []).map(({ name }) => ` ${name}=…`).join('')
    await this.#deps.outbox.send({
      ...origin,
      id: stableId('approval', id),
      kind: 'approval',
      text: [
        `**${agentName}** wants to ${intent} (${risk} risk):`,
        summary,
        `An operator of this bot decides: /approve ${id}${fields} or /reject ${id}`,
      ].join('\n\n'),
      buttons: [
        // A button cannot fill in a form.
        ...(form && form.fields.length > 0 ? [] : [{ label: 'Approve', value: `/approve ${id}` }]),
        { label: 'Reject', value: `/reject ${id}` },
      ],
    })
  }
  async #origin(row: InboxRow) {
    // Nothing is left of a message that was discarded.
    if (!isObject(row.message.chat)) return undefined
    const account = await this.#deps.account(row.channel, row.account)
    const adapter = account && (await this.#deps.adapter(row.channel))
    if (!account || !adapter) return undefined
    return { account, capabilities: adapter.capabilities, to: destinationOf(row.message) }
  }
}
