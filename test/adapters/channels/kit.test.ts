import { createHmac } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { describe, expect, it } from 'vitest'
import * as v from 'valibot'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import {
  ApiClient,
  JsonSocket,
  KeptTokens,
  NameCache,
  pollInBackground,
  readWebhookBody,
  signContent,
  toTlsOptions,
  verifySecret,
  verifySignature,
  verifyTimestamp,
} from 'svc/channels'
import type { ApiAnswer, ErrorFinder } from 'svc/channels'
import type { WebSocketConnection, WebSocketEvents } from 'svc/sdk'
import { localCertificate } from '../../support/platforms/certificate.ts'
import { startPlatformServer } from '../../support/platforms/http.ts'
import type { PlatformAnswer, PlatformCall } from '../../support/platforms/http.ts'
import { Hello } from '../../../adapters/channels/gateway.ts'
import remoteChannels from '../../../adapters/channels/remote.ts'
import type { ChannelDeclaration } from 'svc/channels'
import { createOutbound } from '../../../core/net/outbound.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const settings = {
  allow: ['127.0.0.1'],
  headersTimeoutMs: 5000,
  idleTimeoutMs: 5000,
  maxBytes: 65_536,
  maxRedirects: 3,
}
const answerSchema = v.object({ ok: v.boolean() })
const findError: ErrorFinder = ({ body }: ApiAnswer) => {
  const result = v.safeParse(v.object({ error: v.string(), wait: v.optional(v.number()) }), body)
  return result.success ? { message: result.output.error, retryAfterSecs: result.output.wait } : undefined
}

async function openClient(answer: (call: PlatformCall) => PlatformAnswer) {
  const server = await startPlatformServer(answer)
  const outbound = createOutbound({ settings: () => settings })
  const controller = new AbortController()
  const link = { fetch: outbound.fetch, signal: controller.signal, now: () => NOW }
  const client = new ApiClient(link, {
    system: 'fake',
    authenticate: () => ({ authorization: 'Bearer s3cret' }),
    findError,
    secrets: ['s3cret'],
    refuseRedirects: true,
  })
  return {
    client,
    origin: server.origin,
    controller,
    server,
    outbound,
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

it('a certificate and its key are read without their line breaks, which a form takes away', () => {
  const { cert, key } = localCertificate()
  const joined = (pem: string): string => pem.replaceAll(/\r?\n/g, '')
  const options = { certificate: joined(cert), certificate_key: joined(key), verify_certificate: true }
  const tls = toTlsOptions({ ca: joined(cert), ...options })
  expect(createSecureContext({ ca: String(tls.ca), cert: tls.cert, key: tls.key }).context).toBeDefined()
  expect(tls.ca).toContain('-----BEGIN CERTIFICATE-----\n')
  expect(toTlsOptions({ ...options, certificate_key: undefined })).toEqual({ rejectUnauthorized: true })
})

describe('ApiClient', () => {
  it('tells a server that was not reached from one that may have taken the request, without its address', async () => {
    const stage = await openClient(() => ({ status: 200, body: { ok: true } }))
    const { origin } = stage
    await stage.server[Symbol.asyncDispose]()
    const error = await stage.client.json(`${origin}/s3cret`, {}, answerSchema, 'a reply').catch((thrown) => thrown)
    expect(error).toMatchObject({ retry: 'later', cause: { code: 'ECONNREFUSED', message: 'ECONNREFUSED' } })
    await stage.outbound[Symbol.asyncDispose]()
  })

  it('shows no token that an adapter obtained, in whatever the platform quotes', async () => {
    await using stage = await openClient(({ headers }) => ({
      status: 400,
      body: { error: `bad ${headers.authorization} ${headers['x-access-token']}` },
    }))
    const headers = { authorization: 'Bearer obtained-token', 'x-access-token': 'another-token' }
    const asked = stage.client.json(`${stage.origin}/`, { headers }, answerSchema, 'a reply')
    await expect(asked).rejects.toThrow('fake answered 400: bad Bearer *** ***')
  })

  it('tells an answer that is too long from one that is not JSON', async () => {
    const answers = [{ ok: 'x'.repeat(70_000) }, Buffer.from('<html>')]
    await using stage = await openClient(() => ({ status: 200, body: answers.shift() }))
    const ask = () => stage.client.json(`${stage.origin}/`, {}, answerSchema, 'a reply')
    const failure = { reason: 'malformed', retry: 'later' }
    await expect(ask()).rejects.toMatchObject({ ...failure, message: expect.stringContaining('more than 65536 bytes') })
    await expect(ask()).rejects.toMatchObject({ ...failure, message: expect.stringContaining('not JSON') })
  })

  const failures: readonly (readonly [string, PlatformAnswer, Partial<UpstreamFailure>])[] = [
    ['401', { status: 401, body: {} }, { reason: 'auth', retry: 'never' }],
    ['403, which closes one chat only', { status: 403, body: {} }, { reason: 'invalid_request', retry: 'never' }],
    ['429 in seconds', { status: 429, headers: { 'retry-after': '7' } }, { reason: 'rate_limit', retryAfterSecs: 7 }],
    [
      '429 with a date',
      { status: 429, headers: { 'retry-after': new Date(NOW + 9000).toUTCString() } },
      { reason: 'rate_limit', retryAfterSecs: 9 },
    ],
    ['429 with a field', { status: 429, body: { error: 'slow', wait: 3.5 } }, { retryAfterSecs: 3.5 }],
    ['429 without a hint', { status: 429 }, { reason: 'rate_limit', retry: 'later', retryAfterSecs: undefined }],
    ['503', { status: 503 }, { reason: 'overloaded', retry: 'later' }],
    ['400', { status: 400, body: { error: 'no such chat' } }, { reason: 'invalid_request', retry: 'never' }],
    [
      'an error in 200',
      { status: 200, body: { error: 'no s3cret', ok: true } },
      { message: 'fake answered 200: no ***' },
    ],
    ['an answer of another form', { status: 200, body: { good: 1 } }, { reason: 'malformed', retry: 'later' }],
  ]
  it.each(failures)('throws for %s', async (_, answer, expected) => {
    await using stage = await openClient(() => answer)
    const error = await stage.client.json(stage.origin, { json: {} }, answerSchema, 'a reply').catch((thrown) => thrown)
    expect(error).toBeInstanceOf(UpstreamFailure)
    expect(error).toMatchObject({ system: 'fake', ...expected })
    expect(String(error.message)).not.toContain('s3cret')
  })

  it('sends JSON, files and credentials, and follows no redirect to another host', async () => {
    const calls: PlatformCall[] = []
    await using stage = await openClient((call) => {
      calls.push(call)
      if (call.url.pathname === '/away') return { status: 302, headers: { location: 'http://localhost:4444/' } }
      return { status: 200, body: { ok: true } }
    })
    const form = new FormData()
    form.set('file', new Blob(['content'], { type: 'text/plain' }), 'a"\r\nb.txt')
    await stage.client.json(stage.origin, { json: { text: 'ä' } }, answerSchema, 'a reply')
    await stage.client.json(stage.origin, { form }, answerSchema, 'a reply')
    expect(calls[0]).toMatchObject({ method: 'POST', json: { text: 'ä' } })
    expect(calls[0]?.headers.authorization).toBe('Bearer s3cret')
    const file = (await calls[1]?.form())?.get('file')
    expect(file instanceof File && (await file.text())).toBe('content')
    await expect(stage.client.open(`${stage.origin}/away`)).rejects.toThrow('redirected the request to localhost:4444')
    stage.controller.abort(new Error('stopped'))
    await expect(stage.client.open(stage.origin)).rejects.toThrow('stopped')
  })
})

describe('webhook signatures', () => {
  const body = Buffer.from('{"text":"ä"}')
  const hex = createHmac('sha256', 'key').update(body).digest('hex')
  const scheme = { secret: 'key', prefix: 'sha256=' }

  it('accepts what openssl and platforms sign', () => {
    expect(signContent(body, scheme)).toBe(`sha256=${hex}`)
    verifySignature(body, `sha256=${hex}`, scheme)
    const base64 = createHmac('sha1', 'key').update(body).digest('base64')
    verifySignature(body, base64, { secret: 'key', hash: 'sha1', encoding: 'base64' })
    verifySecret('same', 'same')
    verifyTimestamp(NOW - 299_000, NOW, 300_000)
  })
  it.each<[string, () => void]>([
    ['no header', () => verifySignature(body, undefined, scheme)],
    ['a header without its prefix', () => verifySignature(body, hex, scheme)],
    ['another body', () => verifySignature(Buffer.from('{}'), `sha256=${hex}`, scheme)],
    ['a shorter signature', () => verifySignature(body, `sha256=${hex.slice(0, 10)}`, scheme)],
    ['an empty secret', () => verifySignature(body, signContent(body, { secret: '' }), { secret: '' })],
    ['two empty secrets', () => verifySecret('', '')],
    ['an old timestamp', () => verifyTimestamp(NOW - 301_000, NOW, 300_000)],
    ['a timestamp that is none', () => verifyTimestamp(Number('x'), NOW, 300_000)],
  ])('refuses %s', (_, check) => {
    expect(check).toThrow(Refusal)
  })
})

describe('readWebhookBody', () => {
  it('reads JSON, and refuses what is none', () => {
    expect(readWebhookBody({ body: Buffer.from('{"text":"ä"}') })).toEqual({ text: 'ä' })
    for (const body of ['', '{', '['.repeat(100_000)])
      expect(() => readWebhookBody({ body: Buffer.from(body) })).toThrow('The body is not JSON')
  })
})

describe('NameCache', () => {
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const failing = (retry: 'later' | 'never') => () =>
    Promise.reject(new UpstreamFailure('fake', 'no', { reason: 'not_found', retry }))

  it('asks once for a name, and once for one that there is not', async () => {
    const names = new NameCache({ log }, 'fake')
    expect(await names.find('1', async () => 'Ada')).toBe('Ada')
    expect(await names.find('1', async () => 'Bo')).toBe('Ada')
    expect(await names.find('2', failing('never'))).toBe('2')
    expect(await names.find('2', async () => 'Bo')).toBe('2')
    expect(await names.find('3', async () => '')).toBe('3')
  })

  it('asks again after a failure that may pass', async () => {
    const names = new NameCache({ log }, 'fake')
    expect(await names.find('1', failing('later'))).toBe('1')
    expect(await names.find('1', async () => 'Ada')).toBe('Ada')
  })
})

describe('pollInBackground', () => {
  it('ends with the failure of a poll, and tells what the host needs for the next attempt', async () => {
    let polls = 0
    const link = { signal: new AbortController().signal, heard: () => {}, sleep: async () => {} }
    const background = pollInBackground(link, async () => {
      if (++polls === 3)
        throw new UpstreamFailure('fake', 'fake is busy', { reason: 'rate_limit', retry: 'later', retryAfterSecs: 5 })
    })
    expect(await background.closed).toEqual({ retry: 'later', reason: 'fake is busy', retryAfterSecs: 5 })
  })

  it('waits after a long poll that brought nothing at once, and not after one with events', async () => {
    const waits: number[] = []
    const sleep = async (ms: number) => void waits.push(ms)
    const answers = [false, true, undefined, false]
    const background = pollInBackground({ signal: new AbortController().signal, heard: () => {}, sleep }, async () => {
      if (answers.length === 0) throw new Error('the end')
      return answers.shift()
    })
    await background.closed
    expect(waits).toHaveLength(2)
    for (const ms of waits) expect(ms).toSatisfy((wait: number) => wait > 0 && wait <= 1000)
  })

  it('only refused credentials end it for good', async () => {
    const link = { signal: new AbortController().signal, heard: () => {}, sleep: async () => {} }
    const endOf = async (reason: 'auth' | 'invalid_request') =>
      (
        await pollInBackground(link, () => Promise.reject(new UpstreamFailure('x', 'no', { reason, retry: 'never' })))
          .closed
      ).retry
    expect([await endOf('auth'), await endOf('invalid_request')]).toEqual(['never', 'later'])
  })

  it('ends when it is disposed of, and waits for the poll that runs', async () => {
    const link = { signal: new AbortController().signal, heard: () => {}, sleep: async () => {} }
    let isRunning = false
    const background = pollInBackground(link, async (signal) => {
      isRunning = true
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      isRunning = false
    })
    await background[Symbol.asyncDispose]()
    expect(isRunning).toBe(false)
    expect(await background.closed).toMatchObject({ retry: 'later' })
  })
})

it('a gateway cannot ask for heartbeats without a pause, nor for so few that its end is not noticed', () => {
  const intervalOf = (ms: number) => v.parse(Hello, { heartbeat_interval: ms }).heartbeat_interval
  expect([-1, 0, 41_250, 1e12].map(intervalOf)).toEqual([1000, 1000, 41_250, 60_000])
})

describe('KeptTokens', () => {
  const expired = new UpstreamFailure('fake', 'the token has expired', { reason: 'auth', retry: 'never' })

  function openTokens({ owner = 'ada', kept = new Map<string, string>() } = {}) {
    const obtained: unknown[] = []
    const secrets = {
      read: async (key: string) => kept.get(key),
      write: async (key: string, value: string) => void kept.set(key, value),
    }
    const tokens = new KeptTokens(
      { secrets },
      {
        schema: v.object({ token: v.string() }),
        owner: [owner],
        obtain: async (rejected) => {
          obtained.push(rejected?.token)
          return { token: `t${obtained.length}` }
        },
      },
    )
    return { tokens, obtained, kept }
  }

  it('obtains tokens once, and uses those that are kept, for the same owner alone', async () => {
    const first = openTokens()
    await Promise.all([first.tokens.current(), first.tokens.current()])
    expect(first.obtained).toEqual([undefined])
    const { kept } = first
    const second = openTokens({ kept })
    expect(await second.tokens.current()).toEqual({ token: 't1' })
    expect(second.obtained).toEqual([])
    const other = openTokens({ kept, owner: 'eve' })
    await other.tokens.current()
    expect(other.obtained).toEqual([undefined])
  })

  it('renews tokens once for all work that was refused for them, and not for other failures', async () => {
    const { tokens, obtained } = openTokens()
    const work = async () => {
      const { token } = await tokens.current()
      if (token === 't1') throw expired
      return token
    }
    expect(await Promise.all([tokens.renewing(work), tokens.renewing(work)])).toEqual(['t2', 't2'])
    expect(obtained).toEqual([undefined, 't1'])
    const gone = new UpstreamFailure('fake', 'gone', { reason: 'not_found', retry: 'never' })
    await expect(tokens.renewing(() => Promise.reject(gone))).rejects.toBe(gone)
    await expect(tokens.renewing(() => Promise.reject(expired))).rejects.toBe(expired)
    expect(obtained).toEqual([undefined, 't1', 't2'])
  })

  it('tries again after it failed', async () => {
    const kept = new Map([['tokens', '{"owner":1}']])
    let isAway = true
    const tokens = new KeptTokens(
      { secrets: { read: async (key) => kept.get(key), write: async () => undefined } },
      {
        schema: v.string(),
        owner: 'ada',
        obtain: async () => {
          if (isAway) throw expired
          return 'token'
        },
      },
    )
    await expect(tokens.current()).rejects.toBe(expired)
    isAway = false
    expect(await tokens.current()).toBe('token')
  })
})

describe('a socket with work for each frame', () => {
  it.each([
    ['a thousand frames', '{}', 1000],
    ['64 MiB of frames', JSON.stringify('x'.repeat(8_388_606)), 8],
  ])('reads no more while %s wait, and reads on', async (_, frame, count) => {
    const listeners = new Map<string, (value: never) => void>()
    const calls: string[] = []
    const closed = Promise.withResolvers<{ code: number; reason: string }>()
    const connection: WebSocketConnection = {
      protocol: '',
      bufferedBytes: 0,
      closed: closed.promise,
      on: (event, listener) => {
        listeners.set(event, listener)
        return () => undefined
      },
      send: async () => undefined,
      ping: () => undefined,
      pause: () => void calls.push('pause'),
      resume: () => void calls.push('resume'),
      close: () => closed.promise,
      terminate: () => undefined,
    }
    const stored = Promise.withResolvers<void>()
    const socket = new JsonSocket({ heard: () => undefined }, connection, () => () => stored.promise)
    const receive = listeners.get('message') as (value: WebSocketEvents['message']) => void
    for (let frames = 1; frames < count; frames++) receive(frame)
    expect(calls).toEqual([])
    receive(frame)
    expect(calls).toEqual(['pause'])
    stored.resolve()
    closed.resolve({ code: 1000, reason: '' })
    await socket.ended
    expect(calls).toEqual(['pause', 'resume'])
  })
})

it('an adapter in another process tells that an earlier attempt has sent a message', async () => {
  const capabilities = {
    dialect: 'plain',
    maxLength: 500,
    lengthUnit: 'bytes',
    idempotentSend: true,
    rate: { overall: { perSecond: 1, burst: 1 } },
  }
  const answers: Readonly<Record<string, unknown>> = {
    load: { object: 1, config: {}, capabilities, members: [] },
    open: { object: 2, members: [] },
    closed: new Promise(() => undefined),
    send: { id: 'm1', wasSentBefore: true },
  }
  const remote = {
    call: async (_: number, method: string) => answers[method],
    expose: () => 3,
    exposeNetwork: () => 4,
    release: () => undefined,
    readSchema: () => v.unknown(),
  }
  const added: ChannelDeclaration[] = []
  const registry = { add: (channel: ChannelDeclaration) => () => Promise.resolve(void added.push(channel)) }
  const own = (_: string, add: () => Promise<void>) => add()
  const service = remoteChannels.serve(registry as never, { remote, own, network: {} } as never)
  const declaration = { name: 'parley', title: 'Parley', category: 'messaging', description: 'A chat', hasSetup: false }
  await Reflect.get(service, 'add')([declaration, 0], new AbortController().signal)
  const adapter = (await added[0]?.load())?.default
  const connection = await adapter?.open({ signal: new AbortController().signal } as never)
  const message = { id: '1', to: { chatId: 'c' }, text: 'hi', plainText: 'hi', attachments: [] }
  expect(await connection?.send(message)).toEqual({ id: 'm1', wasSentBefore: true })
})
