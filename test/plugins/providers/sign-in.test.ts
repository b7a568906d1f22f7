import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { UpstreamFailure } from 'svc/sdk'
import { createOutbound } from '../../../core/net/outbound.ts'
import { SignIns } from '../../../plugins/providers/sign-in.ts'
import { dialects } from '../../support/dialects.ts'
import { startFakeGithub } from '../../support/fake-github.ts'
import type { FakeGithub } from '../../support/fake-github.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { outboundSettings } from '../../support/provider-stage.ts'

const never = new AbortController().signal

describe('signing in to GitHub Copilot', () => {
  let github: FakeGithub
  let copilot: FakeProvider
  let host: TestHost
  beforeAll(async () => {
    copilot = await startFakeProvider({
      dialect: { ...dialects.copilot, other: () => undefined },
      models: ['gpt-5-mini', 'claude-sonnet-5'],
    })
  })
  afterAll(() => copilot[Symbol.asyncDispose]())
  beforeEach(async () => {
    github = await startFakeGithub()
    host = await startHost({
      plugins: ['audit', 'providers', 'providers/builtin', 'providers/openai-compatible'],
      memory: true,
      config: {
        providers: {
          'github-copilot': { base_url: copilot.origin, github_url: github.origin, github_api_url: github.origin },
        },
      },
    })
  })
  afterEach(async () => {
    await host[Symbol.asyncDispose]()
    await github[Symbol.asyncDispose]()
  })
  const start = async () => (await host.json('POST', '/api/providers/github-copilot/oauth/start')).body
  const poll = async (id: string) => (await host.json('GET', `/api/providers/github-copilot/oauth/poll/${id}`)).body

  it('the code that is entered becomes a key that holds at once, and no secret is told', async () => {
    const started = await start()
    expect(started).toEqual({
      device_code: started.poll_id,
      user_code: 'WDJB-MJHT',
      verification_uri: 'https://github.com/login/device',
      poll_id: expect.any(String),
      expires_in: 900,
      interval: 0,
    })
    expect(await poll(started.poll_id)).toEqual({ status: 'pending', provider: 'github-copilot', interval: 0 })
    github.decide('authorize')
    const authorized = await poll(started.poll_id)
    expect(authorized).toEqual({ status: 'authorized', provider: 'github-copilot', interval: 0 })
    expect(await poll(started.poll_id)).toEqual(authorized)
    expect((await host.json('GET', '/api/providers/github-copilot')).body.auth_status).toBe('configured')
    expect((await host.json('POST', '/api/providers/github-copilot/test')).body).toMatchObject({
      status: 'ok',
      model_tested: 'gpt-5-mini',
    })
    const { body } = await host.json('GET', '/api/audit/recent')
    expect(JSON.stringify(body)).toContain('key of provider github-copilot stored after signing in')
    expect(JSON.stringify([started, authorized, body])).not.toMatch(/ghu_|3584d835/)
  })
  it.each([
    ['deny', 'the sign-in was refused'],
    ['forget', 'the code was not entered in time'],
  ] as const)('%s ends it', async (what, why) => {
    const { poll_id: id } = await start()
    github.decide(what)
    expect(await poll(id)).toMatchObject({ status: 'expired', error: why })
    expect((await host.json('GET', '/api/providers/github-copilot')).body.auth_status).toBe('missing')
  })
  it('an unknown sign-in, another provider and one that is not signed in to are told apart', async () => {
    const { poll_id: id } = await start()
    expect(await host.json('GET', '/api/providers/github-copilot/oauth/poll/nonsense')).toMatchObject({
      status: 404,
      body: { error: { code: 'sign_in_not_found' } },
    })
    expect((await host.json('GET', `/api/providers/openai/oauth/poll/${id}`)).status).toBe(404)
    expect((await host.json('POST', '/api/providers/openai/oauth/start')).status).toBe(400)
    expect((await host.json('POST', '/api/providers/nonsense/oauth/start')).status).toBe(404)
  })
  it('one exchange serves many calls, also at the same time', async () => {
    github.decide('authorize')
    const { poll_id: id } = await start()
    github.decide('authorize')
    await poll(id)
    await Promise.all(Array.from({ length: 4 }, () => host.json('POST', '/api/providers/github-copilot/test')))
    expect(github.exchanges()).toBe(1)
  })
  it('a token that GitHub does not know says to sign in again', async () => {
    await host.json('POST', '/api/providers/github-copilot/key', { api_key: 'ghp_old' })
    expect((await host.json('POST', '/api/providers/github-copilot/test')).body).toMatchObject({
      status: 'error',
      error: expect.stringContaining('sign in again'),
    })
  })
})

describe('polling', () => {
  async function open(options: Parameters<typeof startFakeGithub>[0] = {}) {
    const github = await startFakeGithub(options)
    const outbound = createOutbound({ settings: () => outboundSettings })
    const granted: string[] = []
    let now = 0
    const signIns = new SignIns({
      fetch: outbound.forOperator(),
      now: () => now,
      granted: async (_, token) => {
        granted.push(token)
      },
    })
    const at = {
      codeUrl: `${github.origin}/login/device/code`,
      tokenUrl: `${github.origin}/login/oauth/access_token`,
      clientId: 'Iv1.b507a08c87ecfe98',
      scope: 'read:user',
    }
    return {
      github,
      signIns,
      at,
      granted,
      pass: (ms: number) => {
        now += ms
      },
      asked: () => github.calls.filter(({ url }) => url.pathname.endsWith('/access_token')).length,
      async [Symbol.asyncDispose]() {
        await outbound[Symbol.asyncDispose]()
        await github[Symbol.asyncDispose]()
      },
    }
  }
  it('asks the vendor no more often than it wants to be asked', async () => {
    await using rig = await open({ interval: 300 })
    const { id } = await rig.signIns.start('p', rig.at, never)
    for (let n = 0; n < 5; n++) expect(await rig.signIns.poll('p', id)).toMatchObject({ status: 'pending' })
    expect(rig.asked()).toBe(0)
    rig.pass(300_000 - 1)
    await rig.signIns.poll('p', id)
    expect(rig.asked()).toBe(0)
  })
  it('slows down when it is told to', async () => {
    await using rig = await open({ interval: 5 })
    const { id } = await rig.signIns.start('p', rig.at, never)
    rig.pass(5000)
    // By the fake's own clock that was at once.
    expect(await rig.signIns.poll('p', id)).toEqual({ status: 'pending', interval: 10 })
    rig.pass(9999)
    await rig.signIns.poll('p', id)
    expect(rig.asked()).toBe(1)
    rig.pass(1)
    await rig.signIns.poll('p', id)
    expect(rig.asked()).toBe(2)
  })
  it('polls at the same time are one question, and the token is kept once', async () => {
    await using rig = await open()
    const { id } = await rig.signIns.start('p', rig.at, never)
    rig.github.decide('authorize')
    const states = await Promise.all(Array.from({ length: 5 }, () => rig.signIns.poll('p', id)))
    expect(states.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'authorized'))
    expect(rig.granted).toEqual([rig.github.token])
    expect(rig.asked()).toBe(1)
  })
  it('ends by itself when the time of the code is over', async () => {
    await using rig = await open({ expiresIn: 60 })
    const { id } = await rig.signIns.start('p', rig.at, never)
    rig.pass(60_000)
    expect(await rig.signIns.poll('p', id)).toMatchObject({ status: 'expired' })
    expect(rig.asked()).toBe(0)
  })
  it('is not kept without end', async () => {
    await using rig = await open()
    const [first] = await Promise.all(Array.from({ length: 25 }, () => rig.signIns.start('p', rig.at, never)))
    await expect(rig.signIns.poll('p', first?.id ?? '')).rejects.toMatchObject({ code: 'sign_in_not_found' })
  })
  it('a vendor that gives no code says why', async () => {
    await using rig = await open()
    await expect(rig.signIns.start('p', { ...rig.at, clientId: 'other' }, never)).rejects.toThrow(
      /incorrect_client_credentials/,
    )
    await expect(
      rig.signIns.start('p', { ...rig.at, codeUrl: `${rig.github.origin}/nothing` }, never),
    ).rejects.toBeInstanceOf(UpstreamFailure)
  })
})
