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
    'index.test.ts': testFile(channel),
  }
}

function testFile(channel: string): string {
  return `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readJson } from 'svc/sdk'
import { startPlugin } from 'svc/testing'

const token = 'the-token-of-the-test'

interface Sent {
  readonly path: string
  readonly authorization: string | undefined
  readonly chat: string
  readonly text: string
}

/** A daemon with an account and an agent. \`sent\` is the first message that the platform was sent. */
async function start() {
  const sent = Promise.withResolvers<Sent>()
  const daemon = await startPlugin({
    plugin: new URL('./', import.meta.url),
    config: { channels: { ${channel}: { token, agent_name: 'helper', allowed_users: ['ada'] } } },
    fetch: async (url, { headers, body }) => {
      const { chat, text } = readJson(String(body)) as Pick<Sent, 'chat' | 'text'>
      sent.resolve({ path: url.pathname, authorization: headers?.['authorization'], chat, text })
      return Response.json({ id: 'sent-1' })
    },
  })
  await daemon.spawn('helper')
  const receive = (authorization: string) =>
    daemon.fetch('/api/channels/${channel}/webhook', {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'm1', chat: 'c1', user: 'ada', name: 'Ada', text: 'Hello' }),
    })
  return { daemon, receive, sent: sent.promise }
}

test('gives a message of the platform to the agent, and sends its answer', async () => {
  const { daemon, receive, sent } = await start()
  await using _ = daemon
  daemon.model.answer('Hello, Ada!')
  assert.equal((await receive(\`Bearer \${token}\`)).status, 200)
  const expected = { path: '/messages', authorization: \`Bearer \${token}\`, chat: 'c1', text: 'Hello, Ada!' }
  assert.deepEqual(await sent, expected)
})

test('refuses a message with a wrong token', async () => {
  const { daemon, receive } = await start()
  await using _ = daemon
  assert.equal((await receive('Bearer wrong')).status, 401)
  assert.deepEqual(daemon.model.requests, [])
})
`
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
