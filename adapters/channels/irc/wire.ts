/** A line of the protocol. */
export interface IrcLine {
  readonly tags: ReadonlyMap<string, string>
  /** Nickname of a user or name of a server; empty when there is none. */
  readonly from: string
  /** `nick!user@host` as it came. */
  readonly prefix: string
  readonly command: string
  readonly params: readonly string[]
}

/** Tags may have 8191 bytes, the rest 512. */
const MAX_LINE_BYTES = 16_384
const TAG_ESCAPES: Readonly<Record<string, string>> = { ':': ';', s: ' ', '\\': '\\', r: '\r', n: '\n' }

/** Parses a line without its end; `undefined` when it has no command. */
export function parseLine(text: string): IrcLine | undefined {
  let rest = text
  const take = (sign: string): string => {
    if (!rest.startsWith(sign)) return ''
    const [word = ''] = rest.split(' ', 1)
    rest = rest.slice(word.length).trimStart()
    return word.slice(1)
  }
  const tags = parseTags(take('@'))
  const prefix = take(':')
  const trailing = rest.indexOf(' :')
  const words = (trailing === -1 ? rest : rest.slice(0, trailing)).split(' ').filter((word) => word !== '')
  const [command, ...params] = words
  if (command === undefined) return undefined
  if (trailing !== -1) params.push(rest.slice(trailing + 2))
  return { tags, prefix, from: prefix.split('!', 1)[0] ?? '', command: command.toUpperCase(), params }
}

function parseTags(text: string): ReadonlyMap<string, string> {
  const pairs = text.split(';').filter((pair) => pair !== '')
  return new Map(
    pairs.map((pair) => {
      const [name = '', ...value] = pair.split('=')
      return [name, value.join('=').replaceAll(/\\(.?)/g, (_, sign: string) => TAG_ESCAPES[sign] ?? sign)]
    }),
  )
}

/** The lines of a connection. Ends with it; throws on a line that no server sends. */
export async function* readLines(connection: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  let rest = Buffer.alloc(0)
  for await (const chunk of connection) {
    rest = Buffer.concat([rest, chunk])
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      const line = rest.subarray(0, end).toString('utf8').replace(/\r$/, '')
      rest = rest.subarray(end + 1)
      if (line !== '') yield line
    }
    if (rest.length > MAX_LINE_BYTES) throw new Error('the server sent a line that is too long')
  }
}
