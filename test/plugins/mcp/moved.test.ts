import { expect, it } from 'vitest'
import { toChange, toConfig } from '../../../plugins/mcp/servers/addition.ts'
import { mergeSecrets } from '../../../plugins/mcp/servers/merge-secrets.ts'

const hosted = {
  name: 'one',
  transport: 'http' as const,
  url: 'https://one.test/mcp',
  headers: { Key: '' },
  oauth: { client_id: 'me' },
}
const program = { name: 'one', transport: 'stdio' as const, command: 'perl', args: ['a.pl'], env: ['TOKEN'] }
const ofOne = { headers: { Key: 'of-one' }, credentials: {}, oauthClientSecret: 'of-one' }
const ofProgram = { headers: {}, credentials: { TOKEN: 'of-one' } }
function merged(from: typeof hosted | typeof program, change: object) {
  const known = from === program ? ofProgram : ofOne
  const old = { ...toConfig(from), credentials: Object.keys(known.credentials) }
  const spec = toChange(old, change)
  return mergeSecrets({ known, old }, spec, toConfig(spec))
}
const none = { headers: {}, credentials: {} }

it.each([
  ['another path', hosted, { url: 'https://one.test/other' }, ofOne],
  ['what it may do', program, { timeout_secs: 5 }, ofProgram],
  ['no headers and no client', hosted, { url: 'https://two.test/', headers: {}, oauth: {} }, none],
  [
    'values of its own',
    hosted,
    { url: 'https://two.test/', headers: { Key: 'of-two' }, oauth: { client_id: 'me', client_secret: 'of-two' } },
    { ...none, headers: { Key: 'of-two' }, oauthClientSecret: 'of-two' },
  ],
  ['a program without variables', program, { args: ['b.pl'], env: [] }, none],
  [
    'another program',
    program,
    { args: ['b.pl'], credentials: { TOKEN: 'new' } },
    { ...none, credentials: { TOKEN: 'new' } },
  ],
  ['an address', program, { transport: 'http', url: 'https://two.test/', env: [] }, none],
])('a change to %s has what was entered for that', (_, from, change, secrets) => {
  expect(merged(from, change)).toEqual(secrets)
})

it.each([
  ['another origin', hosted, { url: 'https://two.test/mcp' }, 'headers.Key, oauth.client_secret'],
  ['http', hosted, { url: 'http://one.test/mcp' }, 'headers.Key, oauth.client_secret'],
  ['names of headers', hosted, { url: 'https://two.test/', headers: { Key: '' }, oauth: {} }, 'headers.Key'],
  ['another program', program, { command: 'mcp-other' }, 'credentials.TOKEN'],
  ['other arguments', program, { args: ['b.pl'] }, 'credentials.TOKEN'],
])('a change to %s is refused unless the values are sent again', (_, from, change, names) => {
  expect(() => merged(from, change)).toThrow(`${names}: entered for another`)
})
