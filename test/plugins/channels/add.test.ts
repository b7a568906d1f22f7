import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { main, startCli } from '../../core/cli/process.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { FakeKeybase } from '../../support/platforms/keybase.ts'
import { FakeLine } from '../../support/platforms/line.ts'
import type { FakePlatform } from '../../support/platforms/platform.ts'
import { FakeTelegram } from '../../support/platforms/telegram.ts'
import { startTerminal } from '../../support/terminal.ts'
import { turnPlugins } from '../plugin-test.ts'

vi.setConfig({ testTimeout: 60_000 })
const SECRETS = new Set(['token', 'channel_secret'])
const adapter = (name: string): string => fileURLToPath(new URL(`../../../adapters/channels/${name}`, import.meta.url))
let home: string
let host: TestHost
let platforms: { readonly telegram: FakePlatform; readonly keybase: FakeKeybase; readonly line: FakePlatform }

/** What stands in the file: addresses and programs, and no secret. */
const withoutSecrets = ({ config }: FakePlatform): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(config).filter(([key]) => !SECRETS.has(key)))
const secretOf = (name: keyof typeof platforms, key = 'token'): string => String(platforms[name].config[key])

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-add-'))
  platforms = {
    telegram: await FakeTelegram.start(),
    keybase: await FakeKeybase.start({ answersAtOnce: true }),
    line: await FakeLine.start(),
  }
  const channels = Object.entries(platforms).map(([name, platform]) => [name, withoutSecrets(platform)])
  host = await startHost({
    home,
    plugins: [
      ...turnPlugins,
      'system',
      'channels',
      ...['telegram', 'keybase', 'line', 'discord', 'wechat', 'whatsapp'].map(adapter),
    ],
    config: { channels: Object.fromEntries(channels) },
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  for (const platform of Object.values(platforms)) await platform[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const add = (name: string, more = '') =>
  startTerminal(`exec ${process.execPath} ${main} channels add ${name} --home ${home} ${more}`, { cols: 160 })
async function pipe(name: string, lines: readonly string[]) {
  const cli = startCli(['channels', 'add', name, '--home', home])
  cli.stdin.end(lines.map((line) => `${line}\n`).join(''))
  return await cli.ended
}
const stateOf = async (name: string) =>
  (await host.json<{ status: { state: string } }>('GET', `/api/channels/${name}`)).body.status.state

it('shows the steps, and Ctrl-C half-way leaves nothing', async () => {
  await using terminal = add('discord')
  await terminal.shows(/Discord, [^]*1\. [^]*token \(.*not shown:$/)
  terminal.type('a-secret-half\u0003')
  expect(await terminal.ended).not.toMatchObject({ code: 0 })
  expect(terminal.raw).not.toContain('a-secret-half')
  expect((await host.json('GET', '/api/channels/discord')).body).toMatchObject({ configured: false, account_list: [] })
})

it('in a terminal: says what is wrong with a token, and takes the right one without showing it', async () => {
  await using wrong = add('telegram')
  await wrong.shows(/token .*not shown:$/)
  wrong.type('not-a-token\r')
  await wrong.shows(/webhook_secret .*not shown:$/)
  wrong.type('\r')
  expect(await wrong.ended).not.toMatchObject({ code: 0 })
  expect(wrong.screen()).toMatch(/token: .*a bot token of @BotFather, such as 123456:ABC-DEF/)
  await using right = add('telegram')
  await right.shows(/token .*not shown:$/)
  right.type(`${secretOf('telegram')}\r`)
  // The secret of the webhook, which is not needed.
  await right.shows(/webhook_secret .*Enter leaves it out.*not shown:$/)
  right.type('\r')
  expect(await right.ended).toEqual({ code: 0, signal: null })
  expect(right.screen()).toMatch(
    /Telegram is configured[^]*The credentials are accepted: @svc_test_bot[^]*channels pair/,
  )
  expect(wrong.raw + right.raw).not.toMatch(/not-a-token|AAFD39/)
  await expect.poll(() => stateOf('telegram')).toBe('connected')
})

it('checks an account of a program beside its connection, which goes on', async () => {
  await using terminal = add('keybase')
  await terminal.shows(/token .*not shown:$/)
  terminal.type(`${secretOf('keybase')}\r`)
  expect(await terminal.ended).toEqual({ code: 0, signal: null })
  expect(terminal.screen()).toContain('The credentials are accepted: svcbot')
  expect(await stateOf('keybase')).toBe('connected')
  const { started } = platforms.keybase
  expect(started.filter((args) => args.at(-1) === 'service')).toHaveLength(1)
})

it('in a pipe: says what is missing or refused, and takes the right secrets', async () => {
  expect(await pipe('line', [])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/token is required[^]*printf/),
  })
  expect(await pipe('keybase', [])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/nothing was given for keybase[^]*channels test keybase/),
  })
  const refused = await pipe('line', ['another-token', secretOf('line', 'channel_secret')])
  expect(refused).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/401: Authentication failed[^]*channels add line` again/),
  })
  const line = await pipe('line', [secretOf('line'), secretOf('line', 'channel_secret')])
  expect(line).toMatchObject({ code: 0, stdout: expect.stringContaining('The credentials are accepted') })
  await expect.poll(() => stateOf('line')).toBe('connected')
  const output = [refused, line].map(({ stdout, stderr }) => stdout + stderr).join('')
  for (const secret of [secretOf('line'), secretOf('line', 'channel_secret'), 'another-token'])
    expect(output).not.toContain(secret)
})

it('asks nothing of an account that signs in with a code, and says how', async () => {
  expect(await pipe('wechat', [])).toMatchObject({ code: 0, stdout: expect.stringContaining('channels login wechat') })
  const web = startCli(['channels', 'add', 'whatsapp', '--home', home, '--fields', '{"mode": "web"}'])
  web.stdin.end()
  expect(await web.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('channels login whatsapp') })
})

it('keeps the secrets in the vault alone', async () => {
  const files = await readdir(home, { recursive: true, withFileTypes: true })
  const texts = await Promise.all(
    files.filter((file) => file.isFile()).map((file) => readFile(join(file.parentPath, file.name), 'latin1')),
  )
  expect(texts.length).toBeGreaterThan(2)
  for (const secret of [
    secretOf('telegram'),
    secretOf('line'),
    secretOf('line', 'channel_secret'),
    secretOf('keybase'),
  ])
    expect(texts.some((text) => text.includes(secret))).toBe(false)
})
