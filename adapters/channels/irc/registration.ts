import type { IrcConfig } from './config.ts'
import { encodePlain } from './encode.ts'
import { failureOf, ircFailure } from './errors.ts'
import type { IrcLine } from './wire.ts'

/** What the adapter can use. Each is asked for where the server has it. */
const WANTED = ['message-tags', 'server-time', 'account-tag', 'echo-message', 'sasl']
const MAX_NICK_TRIES = 5

/** What happened to the registration with this line. */
export type Progress = 'going on' | 'registered'

/** Signs in to a server: capabilities, SASL, nickname. Knows nothing of the connection. */
export class Registration {
  /** As the server knows it. */
  nick: string
  readonly capabilities = new Set<string>()
  readonly #config: IrcConfig
  readonly #server: string
  readonly #send: (line: string) => void
  readonly #offered = new Set<string>()
  #tries = 0

  constructor(config: IrcConfig, server: string, send: (line: string) => void) {
    this.#config = config
    this.#server = server
    this.#send = send
    this.nick = config.nick
  }

  begin(): void {
    const { token, sasl_user, nick } = this.#config
    this.#send('CAP LS 302')
    if (token !== undefined && sasl_user === undefined) this.#send(`PASS :${token}`)
    this.#send(`NICK ${nick}`)
    this.#send(`USER ${nick} 0 * :${nick}`)
  }

  /** Throws when the server refuses. */
  take(line: IrcLine): Progress {
    switch (line.command) {
      case 'CAP':
        this.#takeCapabilities(line)
        return 'going on'
      case 'AUTHENTICATE':
        for (const step of encodePlain(this.#config.sasl_user ?? '', this.#config.token ?? '')) this.#send(step)
        return 'going on'
      case '903':
        this.#send('CAP END')
        return 'going on'
      case '433':
        this.#takeNextNick()
        return 'going on'
      case '001':
        this.nick = line.params[0] ?? this.nick
        this.#checkSasl()
        return 'registered'
      default: {
        const failure = failureOf(line, this.#server)
        if (failure) throw failure
        return 'going on'
      }
    }
  }

  #takeCapabilities({ params: [, kind, ...rest] }: IrcLine): void {
    const names = (rest.at(-1) ?? '').split(' ').filter((name) => name !== '')
    if (kind === 'LS') {
      for (const name of names) this.#offered.add(name.split('=', 1)[0] ?? '')
      // A list of several lines has a star in all but the last.
      if (rest[0] !== '*') this.#request()
    } else if (kind === 'ACK') {
      for (const name of names) this.capabilities.add(name)
      if (this.#usesSasl && this.capabilities.has('sasl')) this.#send('AUTHENTICATE PLAIN')
      else this.#send('CAP END')
    } else if (kind === 'NAK') {
      this.#checkSasl()
      this.#send('CAP END')
    }
  }

  #request(): void {
    if (this.#usesSasl && !this.#offered.has('sasl')) throw this.#withoutSasl()
    const names = WANTED.filter((name) => this.#offered.has(name) && (name !== 'sasl' || this.#usesSasl))
    this.#send(names.length === 0 ? 'CAP END' : `CAP REQ :${names.join(' ')}`)
  }

  #takeNextNick(): void {
    if (++this.#tries > MAX_NICK_TRIES)
      throw ircFailure(`${this.#server}: the nickname "${this.#config.nick}" is in use`, 'invalid_request', 'later')
    this.nick += '_'
    this.#send(`NICK ${this.nick}`)
  }

  /** A server that knows no capabilities registers without them. */
  #checkSasl(): void {
    if (this.#usesSasl && !this.capabilities.has('sasl')) throw this.#withoutSasl()
  }
  get #usesSasl(): boolean {
    return this.#config.sasl_user !== undefined
  }
  #withoutSasl(): Error {
    return ircFailure(
      `${this.#server} does not offer SASL: remove sasl_user to use token as its password`,
      'auth',
      'never',
    )
  }
}
