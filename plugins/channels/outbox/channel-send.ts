import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import { DEFAULT_ACCOUNT } from '../accounts/account-id.ts'
import type { ChannelSendDeps } from './send-from-tool.ts'

const url = (what: string) =>
  v.optional(v.pipe(v.string(), v.maxLength(8192), v.url('Expected an address'), v.description(what)))
const Input = v.object({
  channel: v.pipe(v.string(), v.minLength(1), v.maxLength(64), v.description('Such as telegram')),
  recipient: v.pipe(v.string(), v.minLength(1), v.maxLength(512), v.description('Id of the chat')),
  message: v.optional(v.pipe(v.string(), v.maxLength(32_000), v.description('Markdown')), ''),
  subject: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('A first line in bold')), ''),
  file_path: v.optional(v.pipe(v.string(), v.maxLength(1024), v.description('A file of your workspace to attach'))),
  file_url: url('Address of a file to attach'),
  image_url: url('Address of a picture to attach'),
  filename: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('Name of the file for the reader'))),
  thread_id: v.optional(v.pipe(v.string(), v.maxLength(512))),
  account_id: v.optional(v.pipe(v.string(), v.maxLength(64)), DEFAULT_ACCOUNT),
})
export type ChannelSendInput = v.InferOutput<typeof Input>

/** Lets agents write to the chats they are in. The message has one id, that of the call, however often it is tried. */
export function channelSendTool(deps: () => Promise<ChannelSendDeps>): AnyTool {
  return defineTool({
    name: 'channel_send',
    risk: 'write',
    refuses: ['Secret'],
    description:
      'Send a message, a file of your workspace or one of the web, to a chat of yours on another channel. ' +
      'Only to chats in which somebody talked to you. Your answer goes to the present chat by itself.',
    input: Input,
    assess({ channel, recipient, message, file_url: file, image_url: image }) {
      const intent = `send a message to ${recipient} on ${channel}: ${message.slice(0, 200)}`
      const address = file ?? image
      if (address !== undefined) return { intent: `${intent} with ${address.slice(0, 200)}` }
      return { intent, standing: { key: `${channel} ${recipient}`, covers: `messages to ${recipient} on ${channel}` } }
    },
    async run(input, call) {
      const { sendFromTool } = await import('./send-from-tool.ts')
      return sendFromTool(await deps(), input, call)
    },
    // The outbox takes a message once by its id, which is that of the call.
    recover: () => Promise.resolve({ outcome: 'repeat' }),
  })
}
