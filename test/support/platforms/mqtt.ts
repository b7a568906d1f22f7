import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { connectAsync } from 'mqtt'
import type { IClientPublishOptions, MqttClient } from 'mqtt'
import { localCertificate } from './certificate.ts'
import { Recorded } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput, PlatformMessage } from './platform.ts'
import { freePorts, startServer } from './server-process.ts'

const PASSWORD = 'broker-password-91c2'

export interface Mosquitto extends AsyncDisposable {
  readonly port: number
  readonly tlsPort: number
  readonly webSocketPort: number
}
export async function startMosquitto(): Promise<Mosquitto> {
  const [port = 0, tlsPort = 0, webSocketPort = 0] = await freePorts(3)
  const server = await startServer('mosquitto', async (folder) => {
    const file = (name: string): string => join(folder, name)
    const { key, cert } = localCertificate()
    await writeFile(file('key.pem'), key)
    await writeFile(file('cert.pem'), cert)
    await writeFile(file('passwords'), `bot:${PASSWORD}\nada:${PASSWORD}\n`)
    spawnSync('mosquitto_passwd', ['-U', file('passwords')])
    await writeFile(file('rules'), 'user bot\ntopic readwrite svc/#\nuser ada\ntopic readwrite #\n')
    await writeFile(
      file('mosquitto.conf'),
      `user root
allow_anonymous false
password_file ${file('passwords')}
acl_file ${file('rules')}
listener ${port} 127.0.0.1
listener ${webSocketPort} 127.0.0.1
protocol websockets
listener ${tlsPort} 127.0.0.1
certfile ${file('cert.pem')}
keyfile ${file('key.pem')}
`,
    )
    return { command: '/usr/sbin/mosquitto', args: ['-c', file('mosquitto.conf')], port: tlsPort }
  })
  return { port, tlsPort, webSocketPort, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** mosquitto, and a person on it. Each platform has topics of its own. */
export class MosquittoPlatform implements FakePlatform {
  readonly channel = 'mqtt'
  readonly redelivers = true
  readonly secrets = [PASSWORD]
  readonly chats = { direct: 'ada' }
  readonly person = 'ada'
  readonly faults: ReadonlySet<PlatformFault['kind']> = new Set()
  readonly typing: readonly string[] = []
  readonly reactions = []
  readonly violations: readonly string[] = []
  readonly config: Readonly<Record<string, unknown>>
  readonly wrongConfig: Readonly<Record<string, unknown>>
  readonly #person: MqttClient
  readonly #root: string
  readonly #broker: Mosquitto
  readonly #clientId = `bot-${randomUUID()}`
  readonly #shown = new Recorded<PlatformMessage>('messages')
  readonly packets: { readonly topic: string; readonly correlation: string | undefined }[] = []

  static async start(
    broker: Mosquitto,
    protocol: 'v4' | 'v5',
    scheme: 'mqtts' | 'ws' = 'mqtts',
  ): Promise<MosquittoPlatform> {
    const person = await connectAsync(`mqtt://127.0.0.1:${broker.port}`, {
      username: 'ada',
      password: PASSWORD,
      protocolVersion: 5,
    })
    const platform = new MosquittoPlatform(broker, person, protocol, scheme)
    await person.subscribeAsync(`${platform.#root}/out/#`, { qos: 1 })
    return platform
  }

  private constructor(broker: Mosquitto, person: MqttClient, protocol: 'v4' | 'v5', scheme: 'mqtts' | 'ws') {
    this.#broker = broker
    this.#person = person
    this.#root = `svc/${randomUUID()}`
    const root = this.#root
    const base = {
      base_url: scheme === 'ws' ? `ws://127.0.0.1:${broker.webSocketPort}/mqtt` : `mqtts://127.0.0.1:${broker.tlsPort}`,
      ca: localCertificate().cert,
      client_id: this.#clientId,
      username: 'bot',
      subscribe_topics: [`${root}/in/+`],
      publish_topic: `${root}/out/{user}`,
      response_topics: [`${root}/out/wanted/+`],
      protocol,
    }
    this.config = { ...base, token: PASSWORD }
    this.wrongConfig = { ...base, token: 'wrong-password' }
    person.on('message', (topic, payload, { properties }) => {
      this.packets.push({ topic, correlation: properties?.correlationData?.toString() })
      const chatId = topic.split('/').at(-1) ?? ''
      this.#shown.add({ id: '', chatId, text: payload.toString(), edits: [], files: [], buttons: [] })
    })
  }

  get root(): string {
    return this.#root
  }
  get sent(): readonly PlatformMessage[] {
    return this.#shown.items
  }
  waitForSent(count: number): Promise<readonly PlatformMessage[]> {
    return this.#shown.wait(count)
  }
  async deliver({ text, isOwn, redeliveryOf }: PlatformInput): Promise<string> {
    const id = redeliveryOf ?? randomUUID()
    if (!isOwn) await this.publish(JSON.stringify({ id, text }))
    return id
  }
  async publish(payload: string, options: IClientPublishOptions = {}, user = 'ada'): Promise<void> {
    await this.#person.publishAsync(`${this.#root}/in/${user}`, payload, { qos: 1, ...options })
  }
  /** A second client with the same id makes the broker end the connection of the first. */
  async disconnect(): Promise<void> {
    const { port } = this.#broker
    const other = await connectAsync(`mqtt://127.0.0.1:${port}`, {
      clientId: this.#clientId,
      clean: false,
      username: 'bot',
      password: PASSWORD,
      protocolVersion: 5,
      properties: { sessionExpiryInterval: 600 },
      reconnectPeriod: 0,
    })
    await other.endAsync(true)
  }
  fail(): void {
    throw new Error('a real broker does not fail on request')
  }
  setWebhook(): void {}
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#person.endAsync(true)
  }
}
