import { expect, it } from 'vitest'
import { ServerLog } from '../../../plugins/mcp/servers/log.ts'

const SECRET = 'tok-"0815"-nobody/has it'
const begun = (maxChars = 1000): ServerLog => {
  const log = new ServerLog(maxChars)
  log.begin([SECRET, 'Bearer of-a-header', 'first line\nsecond line', 'x'])
  return log
}

it.each([
  ['as it is', [`a ${SECRET} b`], 'a *** b'],
  ['in pieces', ['a ', ...SECRET, ' b'], 'a *** b'],
  ['in JSON', [JSON.stringify({ key: SECRET })], '{"key":"***"}'],
  ['in an address', [`?key=${encodeURIComponent(SECRET)}&`], '?key=***&'],
  ['in Base64', [Buffer.from(SECRET).toString('base64')], '***'],
  ['without the scheme of a header', ['the token of-a-header is old'], 'the token *** is old'],
  ['by one of its lines', ['on second line of it'], 'on *** of it'],
  ['that is too short to be told from words', ['x x'], 'x x'],
])('hides a secret %s', (_, chunks, shown) => {
  const log = begun()
  for (const chunk of chunks) log.add(chunk)
  expect([log.read().text, log.lastOutput(1000)]).toEqual([shown, shown])
})

it('keeps no part of a secret where it is cut, and hides those of an earlier start', () => {
  const log = begun(20)
  log.add(`${SECRET}${'.'.repeat(15)}`)
  expect(log.read()).toEqual({ text: `***${'.'.repeat(15)}`, dropped: 0 })
  log.add('..........')
  log.begin(['of-the-second-start'])
  log.note('now', SECRET)
  expect(log.read().text).toBe('[svc now] ***\n')
  expect(log.lastOutput(100)).toBe('')
})

it('hides credentials in what a server answers, in the keys and texts of any depth, and nothing else', () => {
  const log = new ServerLog(1000)
  const region = 'eu-west-1-of-the-operator'
  log.begin([SECRET, region], [SECRET])
  log.useToken('Bearer of-the-login')
  const answer = {
    content: [{ type: 'text', text: `${SECRET} in ${region}` }],
    structuredContent: { [SECRET]: ['of-the-login'] },
  }
  expect(log.hideIn(answer)).toEqual({
    content: [{ type: 'text', text: `*** in ${region}` }],
    structuredContent: { '***': ['***'] },
  })
  expect(log.hide(region)).toBe('***')
})
