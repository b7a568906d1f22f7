import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let host: TestHost
let agent = ''
beforeAll(async () => {
  host = await startHost({
    config: {
      webhook_triggers: { enabled: true, token: 'a-token-of-more-than-thirty-two-characters' },
    },
  })
  const { body } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "scribe"' })
  agent = body.agent_id
  await host.json('POST', `/api/agents/${agent}/sessions`, { label: 'Plans for May' })
  await host.json('POST', '/api/models/aliases', { alias: 'quick-one', model_id: 'gpt-4o-mini' })
})
afterAll(() => host[Symbol.asyncDispose]())
const hook = { authorization: 'Bearer a-token-of-more-than-thirty-two-characters' }

const rows: readonly (readonly [string, string, object | undefined, string])[] = [
  ['GET', '/api/tools/file_raed', undefined, 'file_read'],
  ['GET', '/v1/models/scrbe', undefined, 'scribe'],
  ['GET', '/v1/models/svc:scirbe', undefined, 'svc:scribe'],
  ['POST', '/api/hooks/agent', { message: 'hi', agent: 'scrib' }, 'scribe'],
  ['POST', '/api/agents', { template: 'asistant' }, 'assistant'],
  ['GET', '/api/agents/:agent/sessions/by-label/Plans%20for%20Mai', undefined, 'Plans for May'],
  ['GET', '/api/commands/hlep', undefined, 'help'],
  ['DELETE', '/api/models/aliases/quik-one', undefined, 'quick-one'],
]
it.each(rows)('%s %s with %j names %s', async (method, path, body, meant) => {
  const answer = await host.json(method, path.replace(':agent', agent), body, path.includes('/hooks/') ? hook : {})
  expect([answer.status, answer.body.error.message]).toEqual([404, expect.stringMatching(/; did you mean "[^"]+"\?$/)])
  expect(answer.body.error.message).toContain(`did you mean "${meant}"?`)
})

it('a backup that is not there is answered with the one that is', async () => {
  const name = String((await host.json('POST', '/api/backup', {})).body.filename)
  const other = name.replace(/\d(?=Z\.zip$)/, (digit) => String((Number(digit) + 1) % 10))
  expect(await host.json('DELETE', `/api/backups/${other}`)).toMatchObject({
    status: 404,
    body: { error: { message: `There is no backup ${other}; did you mean "${name}"?` } },
  })
})

it('a sign-in provider that is not there is answered with the one that is', async () => {
  await using other = await startHost({
    config: {
      external_auth: {
        enabled: true,
        issuer_url: 'https://accounts.example.org',
        client_id: 'svc',
        client_secret: 'a-secret',
        redirect_url: 'http://127.0.0.1:9/api/auth/callback',
        allowed_domains: ['example.org'],
      },
    },
  })
  expect(await other.json('GET', '/api/auth/login/oidcc')).toMatchObject({
    status: 404,
    body: { error: { message: 'No sign-in provider "oidcc"; did you mean "oidc"?' } },
  })
})
