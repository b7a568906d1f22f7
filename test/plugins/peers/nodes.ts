import { join } from 'node:path'
import { vi } from 'vitest'
import { fakeDefaults, FakeModel, installModel } from '../../../core/testing/fake-model.ts'
import type { ConfigInput } from '../../../core/config/schema.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { PATIENCE_MS } from '../../support/patience.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { turnPlugins } from '../plugin-test.ts'
import { SECRET } from './raw-peer.ts'

export { SECRET }

/** Links come and go within milliseconds here, and each test waits for several. */
export const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: PATIENCE_MS, interval: 5 })

/** A daemon with networking on a home of its own. */
export class Node implements AsyncDisposable {
  readonly name: string
  readonly model = new FakeModel()
  readonly #home: Awaited<ReturnType<typeof temporaryFolder>>
  readonly #more: readonly string[]
  readonly #config: ConfigInput
  #network: Record<string, unknown>
  #host: TestHost | undefined
  #forget: (() => void) | undefined

  private constructor(
    name: string,
    home: Awaited<ReturnType<typeof temporaryFolder>>,
    network: object,
    more: readonly string[],
    config: ConfigInput,
  ) {
    this.name = name
    this.#home = home
    this.#more = more
    this.#config = config
    this.#network = {
      enabled: true,
      listen: '127.0.0.1:0',
      node_id: name,
      node_name: `${name}'s daemon`,
      shared_secret: SECRET,
      reconnect_min_ms: 20,
      reconnect_max_ms: 40,
      audited_refusals_per_minute: 1000,
      connections_per_minute: 10_000,
      new_peers_per_hour: 10_000,
      ...network,
    }
  }
  static async start(
    name: string,
    network: object = {},
    more: readonly string[] = [],
    config: ConfigInput = {},
  ): Promise<Node> {
    const node = new Node(name, await temporaryFolder(), network, more, config)
    node.#forget = await installModel(node.model, join(node.#home.path, 'plugins'))
    await node.start()
    return node
  }

  get host(): TestHost {
    if (!this.#host) throw new Error(`${this.name} is stopped`)
    return this.#host
  }
  get home(): string {
    return this.#home.path
  }
  async start(network: object = {}): Promise<void> {
    this.#network = { ...this.#network, ...network }
    this.#host = await startHost({
      plugins: [...turnPlugins, 'peers', ...this.#more],
      home: this.#home.path,
      listen: this.#more.includes('system'),
      config: { ...fakeDefaults, ...this.#config, network: this.#network } as ConfigInput,
    })
  }
  async stop(): Promise<void> {
    const host = this.#host
    this.#host = undefined
    await host?.stop()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    this.#forget?.()
    await this.#home[Symbol.asyncDispose]()
  }

  async status(): Promise<Json> {
    return (await this.host.json('GET', '/api/network/status')).body
  }
  /** The port for other nodes. */
  async port(): Promise<number> {
    return await eventually(async () => {
      const { listen_address: address } = await this.status()
      if (typeof address !== 'string') throw new Error(`${this.name} does not listen`)
      return Number(address.split(':').at(-1))
    })
  }
  async peers(): Promise<readonly Json[]> {
    return (await this.host.json('GET', '/api/peers')).body.peers
  }
  async linked(to: string, matches: (peer: Json) => boolean = () => true): Promise<Json> {
    return await eventually(async () => {
      const found = (await this.peers()).find(
        (peer) => peer.node_id === to && peer.state === 'connected' && matches(peer),
      )
      if (!found) throw new Error(`${this.name} is not linked with ${to}: ${JSON.stringify(await this.status())}`)
      return found
    })
  }
  async unlinked(from: string): Promise<void> {
    await eventually(async () => {
      if ((await this.peers()).some((peer) => peer.node_id === from && peer.state === 'connected'))
        throw new Error(`${this.name} is linked with ${from}`)
    })
  }
  async send(peer: string, agent: string, message: string, key?: string): Promise<{ status: number; body: Json }> {
    return await this.host.json(
      'POST',
      `/api/peers/${peer}/messages`,
      { agent, message },
      key === undefined ? {} : { 'idempotency-key': key },
    )
  }
  /** How often the model was asked this. */
  asked(text: string): number {
    const said = this.model.requests.map(({ turns }) => turns.at(-1))
    return said.filter(
      (turn) => turn?.role === 'user' && turn.parts.some((part) => 'text' in part && part.text === text),
    ).length
  }
  /** Details of the entries about links, after the one with this number. */
  async audit(after = 0): Promise<readonly string[]> {
    return (await this.#entries()).filter(({ id }) => id > after).map(({ details }) => details)
  }
  /** The number of the newest one. */
  async newest(): Promise<number> {
    return Math.max(0, ...(await this.#entries()).map(({ id }) => id))
  }
  async #entries(): Promise<readonly { readonly id: number; readonly details: string }[]> {
    return (await this.host.json('GET', '/api/audit/recent?limit=50&event_type=wire_connect')).body.entries
  }
  /** The entry of the audit trail that says so. */
  async audited(text: string | RegExp, after = 0): Promise<string> {
    return await eventually(async () => {
      const all = await this.audit(after)
      const found = all.find((details) => (typeof text === 'string' ? details.includes(text) : text.test(details)))
      if (found === undefined) throw new Error(`no entry of ${this.name} says ${text}: ${all.join('\n')}`)
      return found
    })
  }
  async spawn(name: string, more = ''): Promise<string> {
    const manifest_toml = `name = "${name}"\ndescription = "${name} of ${this.name}"\n${more}`
    return (await this.host.json('POST', '/api/agents', { manifest_toml })).body.agent_id
  }
}
