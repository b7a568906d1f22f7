import { describe, expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import { answerGraphRequest, findGraphError, signContent } from 'svc/channels'
import type { WebhookRequest } from 'svc/channels'

// What WhatsApp and Messenger share: the webhooks and errors of the Graph API.

const secrets = { verifyToken: 'verify', appSecret: 'secret' }
function request(method: 'GET' | 'POST', more: { query?: object; body?: string; signature?: string }): WebhookRequest {
  const { query = {}, body = '', signature } = more
  const headers = signature === undefined ? {} : { 'x-hub-signature-256': signature }
  return {
    method,
    query: new URLSearchParams(Object.entries(query)),
    header: (name) => Object.entries(headers).find(([key]) => key === name)?.[1],
    headers: () => headers,
    body: Buffer.from(body),
  }
}
const signatureOf = (body: string, secret = 'secret') => signContent(body, { secret, prefix: 'sha256=' })
const handshake = { 'hub.mode': 'subscribe', 'hub.verify_token': 'verify', 'hub.challenge': '115' }

async function answer(one: WebhookRequest, given = secrets) {
  const received: unknown[] = []
  const { status, body } = await answerGraphRequest(
    one,
    given,
    async (notification) => void received.push(notification),
  )
  return { status, body, received }
}

describe('requests of the Graph API', () => {
  it('a handshake is answered with its challenge, which is cut', async () => {
    const query = { ...handshake, 'hub.challenge': '1'.repeat(10_000) }
    expect(await answer(request('GET', { query }))).toEqual({ status: 200, body: '1'.repeat(256), received: [] })
  })

  it('a signed notification is passed on, and answered when that is done', async () => {
    const body = '{"object":"page"}'
    const one = request('POST', { body, signature: signatureOf(body) })
    expect(await answer(one)).toMatchObject({ status: 200, received: [{ object: 'page' }] })
    const failing = answerGraphRequest(one, secrets, () => Promise.reject(new Error('the disk is full')))
    await expect(failing).rejects.toThrow('the disk is full')
  })

  it.each([
    ['a guessed verify token', request('GET', { query: { ...handshake, 'hub.verify_token': 'guess' } })],
    ['no verify token', request('GET', { query: { 'hub.mode': 'subscribe' } })],
    ['another mode', request('GET', { query: { ...handshake, 'hub.mode': 'unsubscribe' } })],
    ['no signature', request('POST', { body: '{}' })],
    ['the signature of another secret', request('POST', { body: '{}', signature: signatureOf('{}', 'other') })],
    ['the signature of another body', request('POST', { body: '{}', signature: signatureOf('{ }') })],
    ['a signed body that is no JSON', request('POST', { body: '{', signature: signatureOf('{') })],
  ])('refuses %s', async (_, one) => {
    await expect(answer(one)).rejects.toBeInstanceOf(Refusal)
  })

  it('refuses everything without secrets', async () => {
    const none = { verifyToken: '', appSecret: '' }
    await expect(answer(request('GET', { query: { ...handshake, 'hub.verify_token': '' } }), none)).rejects.toThrow()
    await expect(answer(request('POST', { body: '{}', signature: signatureOf('{}', '') }), none)).rejects.toThrow()
  })
})

describe('errors of the Graph API', () => {
  const find = (error: object, usage?: string) =>
    findGraphError(
      { status: 400, ok: false, body: { error: { message: 'm', ...error } }, header: () => usage },
      { 10: { reason: 'invalid_request' }, '10:7': { reason: 'overloaded' }, 190: { reason: 'timeout' } },
    )

  it('knows codes of all products, and takes what a product says before them', () => {
    expect(find({ code: 4 })).toMatchObject({ reason: 'rate_limit', retry: 'later' })
    expect(find({ code: 368 })).toMatchObject({ reason: 'auth', retry: 'never' })
    expect(find({ code: 190 })).toMatchObject({ reason: 'timeout' })
    expect(find({ code: 10, error_subcode: 7 })).toMatchObject({ reason: 'overloaded' })
    expect(find({ code: 10, error_subcode: 8 })).toMatchObject({ reason: 'invalid_request' })
    expect(find({ code: 77, error_data: { details: 'why' } })).toEqual({ message: 'm: why' })
  })

  it('waits as long as the header of limits says', () => {
    const usage = JSON.stringify({
      1: [{ estimated_time_to_regain_access: 3 }, { estimated_time_to_regain_access: 7 }],
    })
    expect(find({ code: 4 }, usage)?.retryAfterSecs).toBe(420)
    for (const other of ['{', '{"1":[]}', '{"1":[{"estimated_time_to_regain_access":-5}]}'])
      expect(find({ code: 4 }, other)?.retryAfterSecs).toBeUndefined()
  })

  it('says nothing about what is no error', () => {
    expect(findGraphError({ status: 200, ok: true, body: {}, header: () => undefined }, {})).toBeUndefined()
  })
})
