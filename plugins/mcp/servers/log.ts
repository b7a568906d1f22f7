import { stripVTControlCharacters } from 'node:util'
import type { McpObject } from '../contract.ts'
import { Redactor } from './redactor.ts'

const LEAST_SECRET_CHARS = 6
/** Of what agents work with, less is hidden. */
const LEAST_CREDENTIAL_CHARS = 10

/**
 * The end of what a server wrote, in a bounded number of characters. Secrets that it got of svc are hidden before they
 * are kept.
 */
export class ServerLog {
  readonly #maxChars: number
  #text = ''
  #dropped = 0
  /** What its program wrote since it was started last. */
  #output = ''
  readonly #secrets = new Redactor(LEAST_SECRET_CHARS)
  readonly #credentials = new Redactor(LEAST_CREDENTIAL_CHARS)
  constructor(maxChars: number) {
    this.#maxChars = maxChars
  }

  /** A program is started with these secrets; `credentials`: those that no answer repeats. */
  begin(secrets: readonly string[], credentials: readonly string[] = []): void {
    this.#output = ''
    this.#secrets.add(secrets)
    this.#credentials.add(credentials)
  }
  /** The credentials of the requests that are sent now. */
  useToken(token: string): void {
    this.#secrets.useToken(token)
    this.#credentials.useToken(token)
  }
  /** A text without the secrets. */
  hide(text: string): string {
    return this.#secrets.hide(text)
  }
  /** What the server answers or asks, without its credentials: agents see it, and it is stored. */
  hideIn(value: McpObject): McpObject {
    return this.#credentials.hideIn(value)
  }
  add(text: string): void {
    this.#append(text)
    this.#output = this.#hide(this.#output, text).slice(-this.#maxChars)
  }
  note(at: string, text: string): void {
    this.#append(`${this.#text === '' || this.#text.endsWith('\n') ? '' : '\n'}[svc ${at}] ${text}\n`)
  }
  read(): { readonly text: string; readonly dropped: number } {
    return { text: this.#text, dropped: this.#dropped }
  }
  /** The last lines that the program wrote, at most so many characters. */
  lastOutput(chars: number): string {
    const text = stripVTControlCharacters(this.#output).trim()
    if (text.length <= chars) return text
    const from = text.length - chars
    const line = text.indexOf('\n', from)
    return text.slice(line === -1 ? from : line + 1)
  }

  #append(text: string): void {
    this.#text = this.#hide(this.#text, text)
    const over = this.#text.length - this.#maxChars
    if (over <= 0) return
    // Cut at the beginning of a line where there is one.
    const line = this.#text.indexOf('\n', over)
    const cut = line === -1 ? over : line + 1
    this.#dropped += cut
    this.#text = this.#text.slice(cut)
  }
  /** Both texts without secrets. What was kept is searched again only as far as one may go on in what is added. */
  #hide(kept: string, added: string): string {
    const from = Math.max(0, kept.length - this.#secrets.longest)
    return kept.slice(0, from) + this.#secrets.hide(kept.slice(from) + added)
  }
}
