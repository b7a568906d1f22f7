import { quote } from './plugin.ts'
import type { Template } from './template.ts'

/** A channel that receives and sends over one HTTP API, and a test of its adapter. */
export function channelFiles({ name, description }: Template): Readonly<Record<string, string>> {
  const channel = name.replaceAll('-', '_')
  return {
    'index.ts': `import { defineChannel } from 'svc/channels'

export default defineChannel('0.1.0', {
  name: '${channel}',
  title: ${quote(name)},
  apiVersion: '^1.2.0',
  category: 'messaging',
  description: ${quote(description || `Messages of ${name}`)},
  load: () => import('./adapter.ts'),
})
`,
    'adapter.ts': adapterFile(channel),
    'index.test.ts': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import channel from './index.ts'

test('is a channel with an adapter', async () => {
  assert.equal(channel.name, 'channel-${name}')
  const { default: adapter } = await import('./adapter.ts')
  assert.ok(adapter.capabilities.maxLength > 0)
})
`,
  }
}

/** Credentials and the shapes of the platform, then the adapter. */
function adapterFile(channel: string): string {
  return `import * as v from 'valibot'
import { ApiClient, defineAdapter, verifySecret, waitForEnd } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import { readJson, secret } from 'svc/sdk'

/** A message as the platform sends it to the webhook. */
const Incoming = v.object({ id: v.string(), chat: v.string(), user: v.string(), name: v.string(), text: v.string() })
const Sent = v.object({ id: v.string() })
const Account = v.object({ name: v.string() })
const Config = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1))),
  base_url: v.optional(v.pipe(v.string(), v.url()), 'https://api.example.org'),
})
type Link = ChannelLink<v.InferOutput<typeof Config>>

const connect = (link: Link): ApiClient =>
  new ApiClient(link, {
    system: '${channel}',
    authenticate: () => ({ authorization: \`Bearer \${link.config.token}\` }),
  })

${ADAPTER}`
}

const ADAPTER = `export default defineAdapter({
  config: Config,
  capabilities: {
    dialect: 'plain',
    maxLength: 4000,
    lengthUnit: 'characters',
    idempotentSend: true,
    rate: { overall: { perSecond: 1, burst: 5 } },
  },
  async open(link) {
    // A platform that is polled or keeps a socket open: \`pollInBackground\` and \`runInBackground\` of svc/channels.
    const background = waitForEnd(link)
    const api = connect(link)
    return {
      closed: background.closed,
      [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
      // The host retries with the same id: the platform drops what it has.
      async send({ id, to, text }) {
        const url = \`\${link.config.base_url}/messages\`
        return await api.json(url, { json: { key: id, chat: to.chatId, text } }, Sent, 'the sent message')
      },
      async webhook({ header, body }) {
        verifySecret(header('authorization'), \`Bearer \${link.config.token}\`)
        const message = v.parse(Incoming, readJson(new TextDecoder().decode(body)))
        await link.receive({
          id: message.id,
          chat: { id: message.chat, kind: 'direct' },
          sender: { id: message.user, name: message.name },
          text: message.text,
          attachments: [],
          mentionsBot: true,
          sentAt: new Date(link.now()).toISOString(),
        })
        return { status: 200 }
      },
    }
  },
  async probe(link) {
    return { account: (await connect(link).json(\`\${link.config.base_url}/me\`, {}, Account, 'the account')).name }
  },
})
`
