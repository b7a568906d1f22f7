import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider, RecordedRequest } from '../support/fake-provider.ts'
import { FrameProxy } from '../support/frame-proxy.ts'
import type { Json } from '../support/json.ts'
import { Identity } from '../../plugins/peers/identity.ts'
import { RawPeer, SECRET } from '../plugins/peers/raw-peer.ts'
import { call, unlimited } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/** One of two linked daemons: a process, and where it is reached. */
class Linked implements AsyncDisposable {
  readonly #home: string
  readonly #env: NodeJS.ProcessEnv
  readonly #built: boolean
  readonly way: FrameProxy
  #daemon: DaemonProcess | undefined
  constructor(name: string, way: FrameProxy, peers: readonly string[], fake: FakeProvider, built: boolean) {
    this.way = way
    this.#built = built
    this.#home = mkdtempSync(join(tmpdir(), `svc-fault-${name}-`))
    const network = { enabled: true, listen: '127.0.0.1:0', node_id: name, shared_secret: SECRET }
    const lines = Object.entries({ ...network, peers, reconnect_min_ms: 50, reconnect_max_ms: 200 })
    writeFileSync(
      join(this.#home, 'config.toml'),
      `[network]\n${lines.map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join('\n')}\n`,
    )
    this.#env = {
      ...unlimited,
      SVC_PROVIDERS__OPENAI__BASE_URL: fake.url,
      SVC_PROVIDERS__OPENAI__API_KEY: 'test-key',
      SVC_PLUGINS__APPROVALS__POLICY: 'never',
    }
  }
  get daemon(): DaemonProcess {
    if (!this.#daemon) throw new Error('the daemon does not run')
    return this.#daemon
  }
  async start(): Promise<void> {
    this.#daemon = await startDaemon({ home: this.#home, built: this.#built, env: this.#env })
    const address = await there(`${this.#home} listens`, async () => {
      const { body } = await call(this.daemon, 'GET', '/api/network/status')
      return typeof body.listen_address === 'string' ? body.listen_address : undefined
    })
    this.way.target = Number(address.split(':').at(-1))
  }
  async restart(): Promise<void> {
    await this.daemon.kill()
    await this.start()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#daemon?.kill()
    await this.way[Symbol.asyncDispose]()
    rmSync(this.#home, { recursive: true, force: true })
  }
}

const last = ({ body }: RecordedRequest): Json => body.messages?.at(-1)
const userTexts = ({ body }: RecordedRequest): readonly string[] =>
  (body.messages ?? []).filter(({ role }) => role === 'user').map(({ content }) => JSON.stringify(content))

/**
 * Each of two linked daemons is killed by turns, while the model of the one that is asked thinks. The link comes back,
 * the answer arrives, and there is one turn for each message.
 */
export async function peers({ rounds, built }: Omit<FaultOptions, 'seed'>) {
  await using fake = await startFakeProvider()
  const held = new Map<string, PromiseWithResolvers<void>>()
  const asked = new Map<string, number>()
  fake.always(async (request) => {
    const [found, ...others] = (userTexts(request).at(-1) ?? '').matchAll(/for (scribe|clerk) (\w+)/g)
    // A conversation that became long is summed up.
    if (!found || others.length > 0) return { text: 'They asked, and were answered.' }
    const [, agent, name = ''] = found
    if (agent === 'clerk')
      return last(request).role === 'tool'
        ? { text: String(last(request).content) }
        : { calls: [{ name: 'peer_send', args: { peer: 'bob', agent: 'scribe', message: `for scribe ${name}` } }] }
    asked.set(name, (asked.get(name) ?? 0) + 1)
    await held.get(name)?.promise
    return { text: `done ${name}` }
  })
  const way = await FrameProxy.start()
  await using bob = new Linked('bob', way, [], fake, built)
  await using alice = new Linked('alice', await FrameProxy.start(), [`bob@127.0.0.1:${way.port}`], fake, built)
  await Promise.all([bob.start(), alice.start()])
  const model = '[model]\nprovider = "openai"\nmodel = "fake-1"\n'
  const grant = '[capabilities]\ntools = ["*"]\nofp_connect = ["*"]\n'
  await call(bob.daemon, 'POST', '/api/agents', { manifest_toml: `name = "scribe"\n${model}` })
  await call(alice.daemon, 'POST', '/api/agents', { manifest_toml: `name = "clerk"\n${model}${grant}` })
  const identity = new Identity()
  const problems: string[] = []
  const check = (what: string, found: unknown, expected: unknown): void => {
    if (found !== expected) problems.push(`${what}: ${String(found)} instead of ${String(expected)}`)
  }
  const thinking = (name: string): Promise<number> => there(`a model is asked for ${name}`, () => asked.get(name))

  for (let round = 0; round < rounds; round++) {
    // The one that is asked is killed: it begins its turn again, and the other one gets the answer.
    const one = `callee${round}`
    held.set(one, Promise.withResolvers())
    const body = { agent: 'scribe', message: `for scribe ${one}` }
    const answer = call(alice.daemon, 'POST', '/api/peers/bob/messages', body, 60_000)
    await thinking(one)
    await bob.restart()
    held.get(one)?.resolve()
    check(`the answer to ${one}`, (await answer).body.text, `done ${one}`)
    const same = fake.requests.filter((request) => userTexts(request).at(-1)?.includes(one))
    const copies = userTexts(same.at(-1) as RecordedRequest).filter((text) => text.includes(one)).length
    check(`messages ${one} in the conversation`, copies, 1)

    // The one that asks is killed: its tool sends the message again, which is no second turn.
    const two = `caller${round}`
    held.set(two, Promise.withResolvers())
    const request = { id: two, method: 'agent_message', agent: 'clerk', message: `for clerk ${two}` }
    const first = await RawPeer.link(alice.way.target, 'alice', 'carol', { identity })
    first.send({ type: 'request', ...request })
    await thinking(two)
    await alice.restart()
    const again = await RawPeer.link(alice.way.target, 'alice', 'carol', { identity })
    held.get(two)?.resolve()
    const { text, message } = await again.ask(request)
    if (!text?.includes(`done ${two}`)) problems.push(`the answer to ${two}: ${text ?? message}`)
    check(`times that ${two} was asked for`, asked.get(two), 1)
    for (const { socket } of [first, again]) socket.destroy()
  }
  return { rounds, problems } satisfies FaultReport
}

/** What is there at last. */
async function there<T>(what: string, find: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let tries = 0; tries < 1_500; tries++) {
    const found = await find()
    if (found !== undefined) return found
    await delay(20)
  }
  throw new Error(`it never came: ${what}`)
}
