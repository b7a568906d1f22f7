import { encrypt, getSignature } from '@wecom/crypto'
import { expect, it } from 'vitest'
import { openEnvelope, signatureOf } from '../../../adapters/channels/wechat/account-crypto.ts'

// @wecom/crypto is the scheme of WeCom, which official accounts share.

const key = 'jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C'

it.each([0, 1, 11, 12, 31, 32, 33, 5000])('an envelope of %i bytes by @wecom/crypto is opened', (length) => {
  const xml = 'ä'.repeat(Math.floor(length / 2)) + 'x'.repeat(length % 2)
  expect(openEnvelope(encrypt(key, xml, 'wx5823bf96d3bd56c7'), key)).toEqual({ xml, appId: 'wx5823bf96d3bd56c7' })
})

it('a signature is the one of @wecom/crypto, in whatever order the texts are', () => {
  for (const [token, time, nonce, content] of [
    ['QDG6eK', '1409659589', '263014780', 'P+E=='],
    ['Zz', '9', 'a', ''],
    ['1', 'Z', 'ä', '/'],
  ] as const)
    expect(signatureOf(token, time, nonce, content)).toBe(getSignature(token, time, nonce, content))
})
