import { allowsHost, mediaTypeOf } from 'svc/internal'
import { idempotencyKey, Refusal } from 'svc/sdk'
import type { Fetch, ToolCallContext } from 'svc/sdk'
import type { ChannelAdapter } from 'svc/channels'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
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
  readonly audit: Pick<Audit, 'write'>
  readonly fetch: Fetch
  readonly workspaces: () => Workspaces | undefined
}

const MAX_FILE_BYTES = 20 * 1024 * 1024
const FETCH_MS = 30_000

/** Puts the message into the outbox. Its id is that of the call. */
export async function sendFromTool(
  deps: ChannelSendDeps,
  input: ChannelSendInput,
  { agentId, turnId, callId, signal }: Pick<ToolCallContext, 'agentId' | 'turnId' | 'callId' | 'signal'>,
): Promise<string> {
  const agent = await deps.agents.require(agentId)
  const { account, adapter } = await findTarget(deps, agent, input)
  const id = idempotencyKey({ turnId, callId })
  const attachments = await readFiles(deps, agent, input, { id, signal })
  const text = [input.subject === '' ? '' : `**${input.subject}**`, input.message].filter((part) => part !== '')
  if (text.length + attachments.length === 0) throw new Refusal('invalid_request', 'Give a message or a file_path')
  await deps.outbox.send({
    id,
    kind: 'tool',
    account,
    capabilities: adapter.capabilities,
    to: { chatId: input.recipient, ...(input.thread_id !== undefined && { threadId: input.thread_id }) },
    text: text.join('\n\n'),
    attachments,
    agentId,
    turnId,
  })
  const status = (await deps.outbox.state(id)) ?? 'pending'
  const what = `Message ${id} to ${input.recipient} on ${input.channel}`
  return `${what} is in the outbox (status: ${status}) and is sent in its turn.`
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

interface Download {
  readonly id: string
  readonly signal: AbortSignal
}
async function readFiles(
  deps: ChannelSendDeps,
  agent: Agent,
  input: ChannelSendInput,
  download: Download,
): Promise<readonly StoredAttachment[]> {
  const { file_path: path, file_url: file, image_url: image } = input
  const given = [path, file, image].filter((each) => each !== undefined)
  if (given.length > 1) throw new Refusal('invalid_request', 'Give one of file_path, file_url and image_url')
  if (path !== undefined) return [await describeFile(deps, agent, input)]
  const address = file ?? image
  if (address === undefined) return []
  const stored = await fetchFile(deps, agent, new URL(address), download)
  const attachment = await describeFile(deps, agent, { ...input, file_path: stored })
  if (image !== undefined && attachment.kind !== 'image')
    throw new Refusal('invalid_request', `image_url: ${image} is ${attachment.mime}, not a picture; use file_url`)
  return [{ ...attachment, name: input.filename ?? nameOf(new URL(address)) }]
}
const nameOf = ({ pathname }: URL): string =>
  pathname
    .slice(pathname.lastIndexOf('/') + 1)
    .replaceAll(/[^\w.-]+/g, '_')
    .replace(/^[._]+/, '')
    .slice(-80) || 'file'

/** Reads a file of the web into the workspace, so that it is still there when the message is sent. Its name there. */
async function fetchFile(
  { fetch, audit, workspaces }: ChannelSendDeps,
  agent: Agent,
  url: URL,
  { id, signal }: Download,
): Promise<string> {
  const files = workspaces()
  if (!files) throw new Refusal('service_unavailable', 'Files are not available: their plugin is not loaded')
  const { network } = agent.manifest.capabilities
  const check = (each: URL): void => {
    if (!allowsHost(network, each))
      throw new Refusal('forbidden', `capabilities.network of the manifest does not let you reach ${each.host}`)
  }
  check(url)
  await audit.write({ event: 'network_access', agentId: agent.id, details: `GET ${url.origin}` })
  const limits = { maxBytes: MAX_FILE_BYTES, totalTimeoutMs: FETCH_MS }
  const response = await fetch(url, { method: 'GET', signal, check, ...limits })
  if (!response.ok) throw new Refusal('invalid_request', `${url.host} answered ${response.status}`)
  const path = `downloads/${id}-${nameOf(url)}`
  await files.write(agent.id, path, await response.bytes())
  return path
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
