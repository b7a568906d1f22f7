import { mediaTypeOf, stableId } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import type { ChannelAdapter } from 'svc/channels'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Workspaces } from '../../files/contract.ts'
import type { Account, FindAccount } from '../accounts/account.ts'
import type { Conversations } from '../routing/conversations.ts'
import { takesChannel } from '../routing/router.ts'
import type { ChannelSendInput } from './channel-send.ts'
import type { StoredAttachment } from './message.ts'
import type { Outbox } from './outbox.ts'

export interface ChannelSendDeps {
  readonly agents: Pick<Agents, 'require'>
  readonly account: FindAccount
  readonly adapter: (channel: string) => Promise<ChannelAdapter | undefined>
  readonly conversations: Pick<Conversations, 'chatsOf'>
  readonly outbox: Outbox
  readonly workspaces: () => Workspaces | undefined
}

const MAX_FILE_BYTES = 20 * 1024 * 1024

/** Puts the message into the outbox. Its id is that of the call. */
export async function sendFromTool(
  deps: ChannelSendDeps,
  input: ChannelSendInput,
  { agentId, turnId, callId }: Pick<ToolCallContext, 'agentId' | 'turnId' | 'callId'>,
): Promise<string> {
  const agent = await deps.agents.require(agentId)
  const { account, adapter } = await findTarget(deps, agent, input)
  const attachments = input.file_path === undefined ? [] : [await describeFile(deps, agent, input)]
  const text = [input.subject === '' ? '' : `**${input.subject}**`, input.message].filter((part) => part !== '')
  if (text.length + attachments.length === 0) throw new Refusal('invalid_request', 'Give a message or a file_path')
  await deps.outbox.send({
    id: stableId('tool', turnId, callId),
    kind: 'tool',
    account,
    capabilities: adapter.capabilities,
    to: { chatId: input.recipient, ...(input.thread_id !== undefined && { threadId: input.thread_id }) },
    text: text.join('\n\n'),
    attachments,
    agentId,
    turnId,
  })
  return `The message to ${input.recipient} on ${input.channel} is in the outbox and is sent in its turn.`
}

async function findTarget(
  { account: findAccount, adapter: load, conversations }: ChannelSendDeps,
  agent: Agent,
  { channel, account_id: id, recipient }: ChannelSendInput,
): Promise<{ readonly account: Account; readonly adapter: ChannelAdapter }> {
  if (!takesChannel(agent, channel)) throw new Refusal('forbidden', `The manifest does not let you use ${channel}`)
  const account = await findAccount(channel, id)
  const adapter = account && (await load(channel))
  if (!account?.enabled || !adapter) throw new Refusal('channel_not_found', `${channel} has no account "${id}" in use`)
  const chats = await conversations.chatsOf(agent.id, channel, id)
  if (!chats.some(({ chat }) => chat === recipient))
    throw new Refusal('forbidden', `Nobody talked to you in chat ${recipient} of ${channel}, so you cannot write there`)
  return { account, adapter }
}

async function describeFile(
  { workspaces }: ChannelSendDeps,
  agent: Agent,
  { file_path: path = '', filename }: ChannelSendInput,
): Promise<StoredAttachment> {
  const files = workspaces()
  if (!files) throw new Refusal('service_unavailable', 'Files are not available: their plugin is not loaded')
  const bytes = await files.read(agent.id, path, { maxBytes: MAX_FILE_BYTES })
  const mime = await mediaTypeOf(bytes)
  const [family = ''] = mime.split('/')
  return {
    agentId: agent.id,
    path,
    kind: family === 'image' || family === 'audio' || family === 'video' ? family : 'file',
    name: filename ?? path.slice(path.lastIndexOf('/') + 1),
    mime,
    size: bytes.length,
  }
}
