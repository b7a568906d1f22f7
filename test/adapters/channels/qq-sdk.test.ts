import nacl from 'tweetnacl'
import { expect, it } from 'vitest'
import { WebhookKey } from '../../../adapters/channels/qq/signature.ts'

// Vectors of https://bot.q.qq.com/wiki/develop/api-v2/dev-prepare/interface-framework/event-emit.html and of the tests
// of https://github.com/tencent-connect/botgo. The documentation also signs `{ "op": 0,"d": {}, … }` in sign.html: that
// signature is not of the body as it is printed, whatever its spaces.
const QUESTION = {
  secret: 'DG5g3B4j9X2KOErG',
  content: '1725442341Arq0D5A61EgUu4OxUvOp',
  signature:
    '87befc99c42c651b3aac0278e71ada338433ae26fcb24307bdc5ad38c1adc2d01bcfcadc0842edac85e85205028a1132afe09280305f13aa6909ffc2d652c706',
}
const REQUEST = {
  secret: '123456abcdef',
  content:
    '1728981195{"id":"ROBOT1.0_veoihSEXDc8Q.g-6eLpNIa11bH8MisOjn-m-LKxCPntMk6exUXgcWCGpVO7L2QKTNZzjZzFFDSbiOFcqAPWyVA!!",' +
    '"content":"哦一下","timestamp":"2024-10-15T16:33:15+08:00","author":{"id":"675860273","user_openid":"675860273"}}',
  signature:
    'e949b5b94ef4103df903fb031d1d16e358db3db83e79e117edd404c8508be3ce8a76d7bad1bed353194c126a1a5915b4ad8b5288c1191cc53a12acffccd82004',
}

it.each([
  ['the documentation', QUESTION],
  ['botgo', REQUEST],
])('%s signs as we do', (_, { secret, content, signature }) => {
  const key = new WebhookKey(secret)
  expect(key.sign(content)).toBe(signature)
  expect(() => key.verify(Buffer.from(content), signature)).not.toThrow()
  expect(() => key.verify(Buffer.from(`${content} `), signature)).toThrow('not signed')
})

it('tweetnacl verifies what we sign, and we what it signs', () => {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(Buffer.from('naOC0ocQE3shWLAfffVLB1rhYPG7naOC'))
  // The public key that sign.html prints for this secret begins so.
  expect([...publicKey.subarray(0, 4)]).toEqual([215, 195, 98, 254])
  const content = Buffer.from('1725442341{"op":0,"d":"ü"}')
  const key = new WebhookKey('naOC0ocQE3shWLAfffVLB1rhYPG7')
  expect(nacl.sign.detached.verify(content, Buffer.from(key.sign(content), 'hex'), publicKey)).toBe(true)
  const theirs = Buffer.from(nacl.sign.detached(content, secretKey)).toString('hex')
  expect(() => key.verify(content, theirs)).not.toThrow()
})
