import { isObject, readJson } from 'svc/sdk'

const HIDDEN = '***'
/** Of those that were renewed, an answer may still name the last ones. */
const MAX_TOKENS = 4

/** Hides secrets in texts of a server. Values that are shorter would hide ordinary words. */
export class Redactor {
  readonly #leastChars: number
  #given: readonly string[] = []
  #tokens: readonly string[] = []
  /** As they may be written, longest first: one may be a part of another. */
  #spellings: readonly string[] = []
  constructor(leastChars: number) {
    this.#leastChars = leastChars
  }
  get longest(): number {
    return this.#spellings[0]?.length ?? 0
  }

  add(secrets: readonly string[]): void {
    this.#given = [...new Set([...this.#given, ...secrets])]
    this.#findSpellings()
  }
  /** The credentials of the requests that are sent now. */
  useToken(token: string): void {
    if (this.#tokens.includes(token)) return
    this.#tokens = [...this.#tokens, token].slice(-MAX_TOKENS)
    this.#findSpellings()
  }
  hide(text: string): string {
    let hidden = text
    for (const secret of this.#spellings) if (hidden.includes(secret)) hidden = hidden.replaceAll(secret, HIDDEN)
    return hidden
  }
  /** The same value where there is nothing to hide. */
  hideIn(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    if (this.longest === 0) return value
    const text = JSON.stringify(value)
    const hidden = this.hide(text)
    if (hidden === text) return value
    const read = readJson(hidden)
    return isObject(read) ? read : {}
  }
  #findSpellings(): void {
    const all = new Set([...this.#given, ...this.#tokens].flatMap((secret) => spellings(secret, this.#leastChars)))
    this.#spellings = [...all].toSorted((one, other) => other.length - one.length)
  }
}

/** How a secret is written: as it is, in JSON, in an address, in Base64; and its lines and words. */
function spellings(secret: string, leastChars: number): readonly string[] {
  const parts = [secret, ...secret.split(/\r?\n|^(?:Bearer|Basic|Token) /i)].map((part) => part.trim())
  return parts.flatMap((part) =>
    part.length < leastChars
      ? []
      : [part, JSON.stringify(part).slice(1, -1), toAddress(part), Buffer.from(part).toString('base64')],
  )
}
/** Half of a character cannot stand in an address. */
const toAddress = (text: string): string => encodeURIComponent(text.toWellFormed())

/** Whether a value of this name is a credential, and not the name of a region or a person. */
export const isSecretName = (name: string): boolean =>
  /auth|token|key|secret|passw|cookie|credential|(?:^|_)pat$/i.test(name)
