import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ChannelAdapter } from 'svc/channels'
import { knownChannels } from '../../plugins/channels/http/known-channels.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The folder of a channel. */
const folderOf = (name: string): string => name.replaceAll('_', '-')

/** How messages come. */
const RECEIVES: Readonly<Record<string, readonly string[]>> = {
  telegram: ['polling', 'webhook'],
  discord: ['WebSocket'],
  whatsapp: ['webhook', 'linked phone'],
  signal: ['WebSocket', 'polling', 'event stream'],
  matrix: ['polling'],
  email: ['IMAP'],
  irc: ['TCP'],
  xmpp: ['TCP'],
  line: ['webhook'],
  viber: ['webhook'],
  messenger: ['webhook'],
  threema: ['webhook'],
  keybase: ['program'],
  nostr: ['WebSocket'],
  qq: ['WebSocket', 'webhook'],
  wechat: ['polling', 'webhook'],
  mumble: ['TCP'],
  slack: ['WebSocket', 'webhook'],
  teams: ['webhook'],
  mattermost: ['WebSocket'],
  google_chat: ['webhook'],
  webex: ['webhook'],
  feishu: ['WebSocket', 'webhook'],
  rocketchat: ['WebSocket'],
  zulip: ['polling'],
  dingtalk: ['WebSocket', 'webhook'],
  wecom: ['WebSocket', 'webhook'],
  pumble: ['webhook'],
  flock: ['webhook'],
  twist: ['polling'],
  nextcloud: ['polling', 'webhook'],
  bluesky: ['polling'],
  mastodon: ['WebSocket'],
  reddit: ['polling'],
  linkedin: ['polling'],
  twitch: ['WebSocket'],
  discourse: ['polling', 'webhook'],
  gitter: ['polling'],
  revolt: ['WebSocket'],
  guilded: ['WebSocket'],
  webhook: ['webhook'],
  ntfy: ['event stream'],
  gotify: ['WebSocket'],
  mqtt: ['TCP', 'WebSocket'],
}
/** What the code of an adapter uses for that. */
const USED: Readonly<Record<string, RegExp>> = {
  WebSocket: /\bwebSocket\(|\bnew Gateway\(/i,
  webhook: /\bwebhook(?:: \(|\(request|: async)/,
  program: /startProgram\(/,
  IMAP: /'imapflow'/,
  polling: /pollInBackground\(|\.sync\(/,
  'event stream': /streamIdleMs/,
  TCP: /\.connect\(\{|\bconnect: /,
  'linked phone': /baileys/,
}
/** Those that code uses for nothing else: who uses one receives by it. */
const TELLING: ReadonlySet<string> = new Set(['WebSocket', 'webhook', 'program', 'IMAP'])
const PACKAGE = /(?:from |import\(|require\(|\bload\()'((?!node:|svc\/|vitest|valibot|uuid|\.)[^']+)'/g

interface Row {
  readonly name: string
  readonly title: string
  readonly adapter: ChannelAdapter
  readonly transports: readonly string[]
  readonly tested: string
}

/** `docs/channels/compared.md`: what the adapters declare, and what their tests run against. */
export async function channelsPage(): Promise<string> {
  const rows = await Promise.all(knownChannels().map(rowOf))
  return [
    '# Channels compared',
    '',
    'This page is made from the adapters and their tests. [Channels](../channels.md) explains what all have in common; the',
    'page of each has its limits.',
    '',
    '| channel | messages come by | length | edits | typing | threads | replies | reactions | buttons | files in | files out | sent again |',
    '|---|---|---|---|---|---|---|---|---|---|---|---|',
    ...rows.map(abilities),
    '',
    'An edit lets an answer be shown while it is written. `once` under *sent again*: the platform shows a message once when',
    'it is sent again after a lost answer; elsewhere it can appear twice. Where an account can work in several ways, `yes`',
    'is what one of them can: the pages of Nextcloud Talk, WeChat, WeCom and WhatsApp say what the others lack.',
    '',
    '## What the tests run against',
    '',
    'Every adapter passes the same suite: receiving, duplicates, restarts, order, lengths, limits, lost connections and',
    'answers, refused credentials, secrets in logs. A fake speaks the protocol of the platform and refuses what it refuses.',
    'The linked phone of WhatsApp is not in the suite: its tests have a module of the shape of the library in its place.',
    '',
    '| channel | tested against |',
    '|---|---|',
    ...rows.map(({ name, title, tested }) => `| [${title}](${folderOf(name)}.md) | ${tested} |`),
    '',
  ].join('\n')
}

async function rowOf({ name, title }: { readonly name: string; readonly title: string }): Promise<Row> {
  const folder = folderOf(name)
  const { default: adapter } = (await import(`../../adapters/channels/${folder}/adapter.ts`)) as {
    readonly default: ChannelAdapter
  }
  const transports = RECEIVES[name] ?? []
  const code = codeOf(folder)
  const used = Object.keys(USED).filter((transport) => USED[transport]?.test(code))
  const missing = transports.filter((transport) => !used.includes(transport))
  const unlisted = used.filter((transport) => TELLING.has(transport) && !transports.includes(transport))
  if (transports.length === 0 || missing.length > 0 || unlisted.length > 0)
    throw new Error(
      `${name}: how do messages come? Its code has nothing of ${missing.join(', ') || 'none'}, and has ` +
        `${unlisted.join(', ') || 'nothing'} that is not listed`,
    )
  return { name, title, adapter, transports, tested: testedAgainst(folder) }
}

/** Its own files, and those of the adapter that it is a preset of. */
function codeOf(folder: string): string {
  const path = `${root}/adapters/channels/${folder}`
  const own = readdirSync(path).map((file) => readFileSync(`${path}/${file}`, 'utf8'))
  const [, preset] = /'\.\.\/([a-z-]+)\/adapter\.ts'/.exec(own.join('\n')) ?? []
  return [...own, ...(preset === undefined ? [] : [codeOf(preset)])].join('\n')
}

function testedAgainst(folder: string): string {
  const fakes = readdirSync(`${root}/test/support/platforms`).filter(
    (file) => file === `${folder}.ts` || file.startsWith(`${folder}-`),
  )
  const isReal = fakes.some((file) =>
    readFileSync(`${root}/test/support/platforms/${file}`, 'utf8').includes('server-process.ts'),
  )
  const packages = new Set([
    ...packagesOf(`${root}/test/adapters/channels/${folder}-sdk.test.ts`),
    ...packagesIn(blockOf(folder)),
  ])
  const peers = [...packages].toSorted().map((name) => `\`${name}\``)
  return [isReal ? 'a real server' : 'a fake', ...(peers.length > 0 ? [`with ${peers.join(', ')}`] : [])].join(' ')
}
const packagesOf = (path: string): readonly string[] => (existsSync(path) ? packagesIn(readFileSync(path, 'utf8')) : [])
const packagesIn = (code: string): readonly string[] => [...code.matchAll(PACKAGE)].map(([, name = '']) => name)
/** The tests of `platform-sdks.test.ts` that use the fake of a channel. */
function blockOf(folder: string): string {
  const code = readFileSync(`${root}/test/adapters/channels/platform-sdks.test.ts`, 'utf8')
  const fake = new RegExp(`Fake${folder.replaceAll('-', '')}\\b`, 'i')
  return code
    .split(/^it\(/m)
    .slice(1)
    .filter((block) => fake.test(block))
    .join('\n')
}

function abilities({ name, title, adapter, transports }: Row): string {
  const { capabilities: can } = adapter
  const yes = (has: unknown): string => (has ? 'yes' : '')
  const units = { utf16: 'UTF-16 units', characters: 'characters', graphemes: 'graphemes', bytes: 'bytes' }
  const length = `${can.maxLength.toLocaleString('en')} ${units[can.lengthUnit]}`
  return `| ${[
    `[${title}](${folderOf(name)}.md)`,
    transports.join(', '),
    length,
    yes(can.edit),
    yes(can.typing),
    yes(can.threads),
    yes(can.replies),
    yes(can.reactions),
    yes(can.buttons),
    yes(can.attachments?.inbound),
    yes(can.attachments?.outbound),
    can.idempotentSend ? 'once' : '',
  ].join(' | ')} |`
}
