import { xml } from '@xmpp/client'
import type { Client } from '@xmpp/client'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundAttachment } from 'svc/channels'
import type { Link } from './config.ts'
import type { Element } from './wire.ts'

const UPLOAD = 'urn:xmpp:http:upload:0'
const INFO = 'http://jabber.org/protocol/disco#info'
const ITEMS = 'http://jabber.org/protocol/disco#items'
const MAX_SERVICES = 20
const ANSWER_MS = 20_000
/** The only headers that a server may ask for (XEP-0363, section 5). */
const HEADERS: ReadonlySet<string> = new Set(['authorization', 'cookie', 'expires'])

interface UploadService {
  readonly jid: string
  /** Bytes, when the server says so. */
  readonly maxBytes: number | undefined
}

export class FileTooLarge extends UpstreamFailure {
  readonly maxBytes: number

  constructor(jid: string, maxBytes: number) {
    super('xmpp', `it is larger than the ${maxBytes} bytes that ${jid} takes`, {
      reason: 'invalid_request',
      retry: 'never',
    })
    this.maxBytes = maxBytes
  }
}

/** Files for others, by HTTP file upload (XEP-0363). */
export class Uploads {
  readonly #link: Link
  readonly #client: Client
  readonly #domain: string
  #service: Promise<UploadService | undefined> | undefined

  constructor(link: Link, client: Client, domain: string) {
    this.#link = link
    this.#client = client
    this.#domain = domain
  }

  /** Stores a file on the server, and returns its address. Throws `UpstreamFailure`. */
  async store(file: OutboundAttachment): Promise<string> {
    const service = await (this.#service ??= this.#discover())
    if (!service) throw refused(`${this.#domain} takes no files: it has no HTTP file upload (XEP-0363)`)
    if (service.maxBytes !== undefined && file.size > service.maxBytes)
      throw new FileTooLarge(service.jid, service.maxBytes)
    const bytes = await file.bytes()
    const slot = await this.#ask(service.jid, 'request', {
      xmlns: UPLOAD,
      filename: file.name,
      size: String(bytes.length),
      'content-type': file.mime,
    })
    const put = slot?.getChild('put')
    const [target, address] = [put?.attrs['url'] as unknown, slot?.getChild('get')?.attrs['url'] as unknown]
    if (typeof target !== 'string' || typeof address !== 'string') throw refused(`${service.jid} gave no address`)
    await this.#put(target, headersOf(put), bytes, file.mime)
    return address
  }

  async #put(url: string, headers: Record<string, string>, bytes: Uint8Array, mime: string): Promise<void> {
    const answer = await this.#link.fetch(url, {
      method: 'PUT',
      headers: { ...headers, 'content-type': mime },
      body: bytes,
      signal: this.#link.signal,
    })
    if (answer.ok) return
    const isBusy = answer.status === 429 || answer.status >= 500
    throw new UpstreamFailure('xmpp', `the upload was answered with ${answer.status}`, {
      reason: isBusy ? 'overloaded' : 'invalid_request',
      retry: isBusy ? 'later' : 'never',
    })
  }

  async #discover(): Promise<UploadService | undefined> {
    const items = await this.#ask(this.#domain, 'query', { xmlns: ITEMS }).catch(withoutAnswer)
    const named = (items?.getChildren('item') ?? []).map((item) => String(item.attrs['jid'] ?? ''))
    for (const jid of [this.#domain, ...named.slice(0, MAX_SERVICES)]) {
      const info = await this.#ask(jid, 'query', { xmlns: INFO }).catch(withoutAnswer)
      if (info?.getChildren('feature').some((feature) => feature.attrs['var'] === UPLOAD))
        return { jid, maxBytes: maxBytesOf(info) }
    }
    return undefined
  }

  /** What answers a request. */
  async #ask(to: string, name: string, attributes: Record<string, string>): Promise<Element | undefined> {
    const answer = await this.#client.iqCaller.request(xml('iq', { type: 'get', to }, xml(name, attributes)), ANSWER_MS)
    return answer.getChild(name === 'request' ? 'slot' : name)
  }
}

/** A server, or one of its services, that does not know the question. */
function withoutAnswer(error: unknown): undefined {
  if (!(error instanceof Error && error.name === 'StanzaError')) throw error
  return undefined
}

function headersOf(put: Element | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const header of put?.getChildren('header') ?? []) {
    const name = String(header.attrs['name'] ?? '').toLowerCase()
    if (HEADERS.has(name)) headers[name] = header.getText().replaceAll(/[\r\n]/g, '')
  }
  return headers
}

function maxBytesOf(info: Element): number | undefined {
  for (const form of info.getChildren('x', 'jabber:x:data')) {
    const field = form.getChildren('field').find((one) => one.attrs['var'] === 'max-file-size')
    const bytes = Number(field?.getChildText('value'))
    if (Number.isSafeInteger(bytes) && bytes > 0) return bytes
  }
  return undefined
}

function refused(message: string): UpstreamFailure {
  return new UpstreamFailure('xmpp', message, { reason: 'invalid_request', retry: 'never' })
}
