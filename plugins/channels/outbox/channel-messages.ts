import { commandLine, Refusal } from 'svc/sdk'
import type { ChannelAdapter } from 'svc/channels'
import type { Agents } from '../../agents/contract.ts'
import type { AccountEntry, Accounts } from '../accounts/service.ts'
import type { ChannelMessage, ChannelMessages, ChannelTarget } from '../contract.ts'
import { chooseAccount } from '../http/views.ts'
import { takesChannel } from '../routing/router.ts'
import { resultMessageId } from './message.ts'
import type { Outbox } from './outbox.ts'

export interface ChannelMessagesDeps {
  readonly agents: Pick<Agents, 'require'>
  readonly accounts: Pick<Accounts, 'list'>
  readonly outbox: Pick<Outbox, 'send' | 'lastAnswer'>
  readonly adapter: (channel: string) => Promise<ChannelAdapter | undefined>
  /** The name under which a channel is known. Throws `channel_not_found`. */
  readonly channelName: (given: string) => string
}

/** Sends results of other plugins through the outbox. */
export function createChannelMessages(deps: ChannelMessagesDeps): ChannelMessages {
  return {
    async check(target) {
      await findTarget(deps, target)
    },
    async lastChat(agentId) {
      const row = await deps.outbox.lastAnswer(agentId)
      if (!row) return undefined
      const { channel, account, chat: to, thread } = row
      return { channel, account, to, ...(thread !== '' && { thread }) }
    },
    async send(message) {
      const { account, adapter } = await findTarget(deps, message)
      await deps.outbox.send({
        id: resultMessageId(message.id),
        kind: 'answer',
        account,
        capabilities: adapter.capabilities,
        to: destinationOf(message),
        text: message.text,
        agentId: message.agentId,
        turnId: message.turnId,
      })
    },
  }
}

function destinationOf({ to, thread }: ChannelMessage) {
  return { chatId: to, ...(thread !== undefined && { threadId: thread }) }
}

export interface SendingAccount {
  readonly account: AccountEntry
  readonly adapter: ChannelAdapter
}
/** The account that sends to a chat. Throws as `ChannelMessages.check`. */
export async function findTarget(
  { agents, accounts, adapter: load, channelName }: Omit<ChannelMessagesDeps, 'outbox'>,
  { channel: given, account: id, to, agentId }: ChannelTarget,
): Promise<SendingAccount> {
  const channel = channelName(given)
  if (to.trim() === '') throw new Refusal('invalid_request', `The id of a chat of ${channel} is needed`)
  const entries = await accounts.list()
  const chosen = chooseAccount(entries, channel, id)
  const account = entries.find((entry) => entry.channel === channel && entry.id === chosen)
  const adapter = account && (await load(channel))
  if (!account || !adapter)
    throw new Refusal(
      'channel_not_found',
      account
        ? `There is no adapter for ${channel}: install its plugin`
        : `${channel} has no account "${chosen}": ${commandLine(`channels add ${channel}`)} configures one`,
    )
  if (!account.enabled)
    throw new Refusal(
      'invalid_request',
      `Account "${chosen}" of ${channel} is disabled: ${commandLine(`channels enable ${channel}`)} enables it`,
    )
  if (agentId !== undefined && !takesChannel(await agents.require(agentId), channel))
    throw new Refusal('forbidden', `The manifest of the agent does not name ${channel} in its channels`)
  return { account, adapter }
}
