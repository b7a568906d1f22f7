import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { freePort, startForger, Visitor } from '../../support/openid.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { KEY, operator, pair } from '../pairing/devices.ts'
import { startSignIn } from '../sso/rig.ts'

async function database(): Promise<string> {
  return (await testDatabase()).url
}
async function testDatabase() {
  const made = await createTestDatabase()
  onTestFinished(() => made[Symbol.asyncDispose]())
  return made
}

it('a sign-in that one daemon began is ended by another, and each of its steps counts once', async () => {
  const [port, otherPort, forger, database_url] = await Promise.all([freePort(), freePort(), startForger(), database()])
  onTestFinished(() => forger[Symbol.asyncDispose]())
  const start = async (own: number): Promise<TestHost> => {
    const section = { scopes: ['openid', 'email'], redirect_url: `http://127.0.0.1:${port}/api/auth/callback` }
    const host = await startSignIn(forger.issuer, own, section, { database_url })
    onTestFinished(() => host[Symbol.asyncDispose]())
    return host
  }
  const one = await start(port)
  const two = await start(otherPort)
  const visitor = new Visitor()
  const cookie = () => [...visitor.cookies(new URL(one.url))].map(([name, value]) => `${name}=${value}`).join('; ')

  const sent = await visitor.go(`${one.url}/api/auth/login?to=page`, {
    until: (url) => url.pathname === '/api/auth/callback',
  })
  const { search } = new URL(sent.headers.get('location') ?? '')
  const callback = (host: TestHost) =>
    fetch(`${host.url}/api/auth/callback${search}`, { redirect: 'manual', headers: { cookie: cookie() } })
  const answers = await Promise.all([one, two, two, one].map(callback))
  const places = answers.map((answer) => answer.headers.get('location') ?? '')
  expect(places.filter((place) => place.startsWith('/#sso='))).toHaveLength(1)
  expect(places.filter((place) => place === '/#sso-problem=expired')).toHaveLength(3)

  const done = answers.find((answer) => answer.headers.get('location')?.startsWith('/#sso='))
  const [binding = ''] = done?.headers.getSetCookie()[0]?.split(';') ?? []
  const code = done?.headers.get('location')?.slice('/#sso='.length)
  const fetched = await Promise.all(
    [two, one, two, one].map((host) => host.json('POST', '/api/auth/session', { code }, { cookie: binding })),
  )
  expect(fetched.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400])
})

it('a ticket that one daemon issued opens one socket at any', async () => {
  const shared = await testDatabase()
  const database_url = shared.url
  const start = async (key: string): Promise<TestHost> => {
    const host = await startHost({ config: { database_url, api_key: key, pairing: { enabled: true } } })
    onTestFinished(() => host[Symbol.asyncDispose]())
    return host
  }
  const [one, two, stranger] = [await start(KEY), await start(KEY), await start('another-key')]
  const [agent] = (await one.json('GET', '/api/agents', undefined, operator)).body
  const ticket = async (headers: Record<string, string> = operator): Promise<string> =>
    (await one.json('POST', '/api/auth/ws-ticket', undefined, headers)).body.ticket
  const opens = ({ url }: TestHost, value: string) =>
    new Promise<boolean>((resolve) => {
      const address = `${url.replace('http', 'ws')}/api/agents/${agent.id}/ws`
      const socket = new WebSocket(address, ['svc', `svc.ticket.${value}`])
      socket.addEventListener('open', () => {
        socket.close()
        resolve(true)
      })
      socket.addEventListener('error', () => resolve(false))
    })
  const first = await ticket()
  expect((await Promise.all([one, two, two, one].map((host) => opens(host, first)))).filter(Boolean)).toEqual([true])
  expect(await opens(stranger, await ticket())).toBe(false)
  expect(await opens(two, await ticket())).toBe(true)
  expect(await opens(two, 'AAAA')).toBe(false)

  const { id, bearer } = await pair(one)
  await eventually(async () => expect((await two.json('GET', '/api/agents', undefined, bearer)).status).toBe(200))
  expect(await opens(two, await ticket(bearer))).toBe(true)
  const changed = await ticket(bearer)
  await shared.query(`UPDATE core_ticket SET holder = '{"kind":"operator"}'`)
  expect(await opens(two, changed)).toBe(false)
  const late = await ticket(bearer)
  await two.json('DELETE', `/api/pairing/devices/${id}`, undefined, operator)
  expect(await opens(two, late)).toBe(false)
})
