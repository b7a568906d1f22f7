import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from '../../support/json.ts'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: string
  readonly body: Json
  readonly genuine: boolean
}
export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly received: readonly Received[]
  /** Settles when so many have come that fit. */
  count(times: number, fits?: (one: Received) => boolean): Promise<readonly Received[]>
  /** What the next ones are answered; 204 when it is not said. */
  answer: (response: ServerResponse, one: Received, nth: number) => void
}

/** A real receiver, which checks the signatures as its documentation would have it. */
export async function startReceiver(secret: string, port = 0): Promise<Receiver> {
  const received: Received[] = []
  let waiting: (() => void)[] = []
  const receiver = {
    answer: (response: ServerResponse): void => {
      response.writeHead(204).end()
    },
  } as { answer: Receiver['answer'] }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
    })
    request.on('end', () => {
      const raw = Buffer.concat(chunks)
      const { headers } = request
      const hmac = () => createHmac('sha256', secret)
      const signedHeaders = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`
      const plain = `sha256=${hmac().update(raw).digest('hex')}`
      const standard = `v1,${hmac().update(signedHeaders).update(raw).digest('base64')}`
      const body: unknown = JSON.parse(raw.toString('utf8'))
      const one: Received = {
        path: request.url ?? '',
        headers,
        raw: raw.toString('utf8'),
        body,
        genuine: headers['x-webhook-signature'] === plain && headers['webhook-signature'] === standard,
      }
      received.push(one)
      receiver.answer(response, one, received.length)
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: listening } = server.address() as AddressInfo
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${listening}`,
    port: listening,
    received,
    async count(times: number, fits: (one: Received) => boolean = () => true) {
      while (received.filter(fits).length < times)
        await new Promise<void>((resolve) => {
          waiting.push(resolve)
        })
      return received.filter(fits)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}
