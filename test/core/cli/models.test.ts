import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { readSecret } from '../../../core/cli/secret-input.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { runHere } from './here.ts'
import type { Answer } from './here.ts'
import { startCli } from './process.ts'

let home: string
let fake: FakeProvider
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-models-'))
  fake = await startFakeProvider({ key: 'right' })
  host = await startHost({
    home,
    plugins: ['audit', 'catalog', 'providers', 'providers/builtin', 'providers/openai-compatible'],
    config: { providers: { openai: { base_url: fake.url } } },
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
afterEach(() => host.json('DELETE', '/api/providers/openai/key'))
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])

describe('svc models', () => {
  it('lists models with their prices, windows and abilities', async () => {
    const { code, stdout } = await svc('models', '--provider', 'anthropic')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^PROVIDER +MODEL +TIER +WINDOW +IN \/ OUT PER 1M +ABILITIES +USABLE\n/)
    expect(stdout).toMatch(/\nanthropic +claude-opus-5 +frontier +1M +\$5 \/ \$25 +tools vision thinking +no\n/)
  })
  it('says that a price is unknown, or that a model is free', async () => {
    expect((await svc('models', '--provider', 'qianfan')).stdout).toContain('unknown')
    expect((await svc('models', '--available')).stdout).toMatch(/\nbuiltin +offline +local +128k +free +tools +yes\n/)
  })
  it('filters by tier, and refuses one that is none', async () => {
    const { models } = JSON.parse(
      (await svc('models', '--provider', 'openai', '--tier', 'frontier', '--json')).stdout,
    ) as { models: { tier: string }[] }
    expect(models.length).toBeGreaterThan(3)
    expect(new Set(models.map(({ tier }) => tier))).toEqual(new Set(['frontier']))
    expect(await svc('models', '--tier', 'huge')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'svc: --tier cannot be "huge"\n  -> it is one of frontier, smart, balanced, fast, local, custom\n',
    })
  })
  it('says what to do when there is none', async () => {
    expect((await svc('models', '--provider', 'groq', '--available')).stdout).toContain('svc providers set-key')
  })
})

describe('svc providers', () => {
  it('lists them with what they need', async () => {
    const { code, stdout } = await svc('providers')
    expect(code).toBe(0)
    expect(stdout).toMatch(/\nopenai +no key +OPENAI_API_KEY +\d+ +http:\/\/127\.0\.0\.1/)
    expect(stdout).toMatch(/\nbuiltin +needs none +1\n/)
    expect(JSON.parse((await svc('providers', '--json')).stdout)).toMatchObject({
      providers: expect.any(Array) as unknown[],
      total: expect.any(Number) as number,
    })
  })
  it('tells what is below it, and corrects a typing error', async () => {
    const { stdout } = await svc('providers', '--help')
    expect(stdout).toContain('set-key')
    expect(stdout).toContain('Usage: svc providers [flags]')
    expect(await svc('providers', 'set-kye')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean `svc providers set-key`?') as string,
    })
  })
  it('stores a key that comes by standard input, and shows it nowhere', async () => {
    const running = startCli(['providers', 'set-key', 'openai', '--home', home])
    running.stdin.end('  right \nand what follows\n')
    const { code, stdout, stderr } = await running.ended
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toBe('The key of openai is stored and in use. `svc providers test openai` tests it.\n')
    expect(await svc('providers', 'test', 'openai')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^openai answered in \d+ ms \(.+\)\n$/) as string,
    })
    expect((await svc('providers')).stdout).toMatch(/\nopenai +has a key/)
    expect(host.log.join('\n')).not.toContain('right')
  })
  it('stores nothing when nothing comes', async () => {
    const running = startCli(['providers', 'set-key', 'openai', '--home', home])
    running.stdin.end('')
    expect(await running.ended).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no key was given') as string,
    })
    expect((await host.json('GET', '/api/providers/openai')).body.auth_status).toBe('missing')
  })
  it('refuses a provider that is none before it asks for a key', async () => {
    expect(await svc('providers', 'set-key', 'nonsense')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("Provider 'nonsense' not found") as string,
    })
    expect(await svc('providers', 'test', 'nonsense')).toMatchObject({ code: 4 })
    expect(await svc('providers', 'set-key')).toMatchObject({ code: 2 })
  })
  it('tells with exit code 1 why a test failed, in JSON too', async () => {
    await host.json('POST', '/api/providers/openai/key', { api_key: 'wrong' })
    expect(await svc('providers', 'test', 'openai')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('openai') as string,
    })
    const { code, stdout } = await svc('providers', 'test', 'openai', '--json')
    expect([code, JSON.parse(stdout)]).toEqual([1, expect.objectContaining({ status: 'error' })])
  })
  it('says that no daemon runs', async () => {
    for (const line of [['models'], ['providers'], ['providers', 'test', 'openai'], ['providers', 'set-key', 'openai']])
      expect((await runHere([...line, '--home', join(home, 'none')])).code).toBe(3)
  })
})

describe('a secret typed on a terminal', () => {
  function terminal() {
    const raw: boolean[] = []
    let shown = ''
    const input = Object.assign(new PassThrough(), {
      isTTY: true,
      setRawMode(on: boolean) {
        raw.push(on)
        if (on) shown += '(no echo)'
        return input
      },
    })
    const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      shown += String(text)
      return true
    })
    const answer = readSecret('Key: ', input as unknown as NodeJS.ReadStream).finally(() => err.mockRestore())
    return { input, answer, raw, shown: () => shown }
  }
  it('is not shown, not even when it comes at once, and the terminal is as it was afterwards', async () => {
    const { input, answer, raw, shown } = terminal()
    input.write('sk-')
    input.write('secret\r')
    expect(await answer).toBe('sk-secret')
    expect([shown(), raw]).toEqual(['(no echo)Key: \n', [true, false]])
  })
  it('can be corrected', async () => {
    const { input, answer } = terminal()
    input.write('wrong\u0015sk-1x\u007F\b2\n')
    expect(await answer).toBe('sk-2')
  })
  it('is given up with Ctrl-C', async () => {
    const { input, answer, raw } = terminal()
    input.write('sk\u0003')
    await expect(answer).rejects.toMatchObject({ exit: 130 })
    expect(raw).toEqual([true, false])
  })
})
