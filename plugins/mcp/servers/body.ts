import * as v from 'valibot'
import { line, secret } from 'svc/sdk'
import { CLIENT, headerName, isClient, scopes, SERVER_NAME, variable } from '../config.ts'

const text = (chars: number) =>
  v.pipe(
    v.string(),
    v.maxLength(chars),
    v.check((value) => value.isWellFormed() && !value.includes('\0'), 'must be well-formed Unicode without NUL'),
  )
const words = v.optional(v.pipe(v.array(text(4096)), v.maxLength(100)))
const url = v.pipe(
  v.string(),
  v.maxLength(2048),
  v.url('an address such as https://example.com/mcp'),
  v.regex(/^https?:\/\//i, 'an http or https address'),
)

const Headers = v.union([
  v.record(headerName, secret(line(4096))),
  // As other programs write them: a list of "Name: value".
  v.pipe(
    v.array(v.pipe(secret(line(4200)), v.regex(/^[\w!#$%&'*+.^`|~-]{1,100}(?::|$)/, 'a header is "Name: value"'))),
    // A name alone, as a server is shown: its value stays.
    v.transform((list) =>
      Object.fromEntries(
        list.map((each) => {
          const [name = '', ...value] = each.split(':')
          return [name, value.join(':').trim()]
        }),
      ),
    ),
  ),
])
const flat = {
  command: v.optional(line(4096)),
  args: words,
  url: v.optional(url),
}
const nested = v.variant('type', [
  v.object({ type: v.literal('stdio'), command: line(4096), args: words }),
  v.object({ type: v.literal('http'), url }),
  v.object({ type: v.literal('sse'), url }),
])

/** The client that was registered with the vendor by hand. */
const OAuth = v.pipe(
  v.strictObject({
    client_id: v.optional(line(4096)),
    client_secret: v.optional(secret(line(4096))),
    private_key: v.optional(secret(text(16_384))),
    scopes: v.optional(scopes),
    grant: v.optional(v.picklist(['authorization_code', 'client_credentials'])),
  }),
  v.check((client) => isClient(client), CLIENT),
)

/** Keys of the configuration file that widen what a server may do. */
const fileOnly = v.optional(v.never('can be set in [[mcp_servers]] of the configuration file only'))

/** What the API takes of a server. What only the file can say is refused by name. */
export const ServerBody = v.object({
  name: v.pipe(v.string(), v.regex(SERVER_NAME, 'lower-case letters, digits and hyphens, at most 32')),
  transport: v.optional(v.union([v.picklist(['stdio', 'http', 'sse']), nested])),
  ...flat,
  headers: v.optional(Headers),
  env: v.optional(v.pipe(v.array(variable), v.maxLength(100))),
  oauth: v.optional(OAuth),
  credentials: v.optional(secret(v.record(variable, text(65_536)))),
  network: words,
  timeout_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(3600))),
  lazy: v.optional(v.boolean()),
  enabled: v.optional(v.boolean()),
  trust: fileOnly,
  read: fileOnly,
  write: fileOnly,
  path: fileOnly,
  risk: fileOnly,
  tool_risk: fileOnly,
  trust_annotations: fileOnly,
})
export type ServerBody = v.InferOutput<typeof ServerBody>
/** Of a change: the address says the name. */
export const ServerChange = v.object({ ...ServerBody.entries, name: v.optional(ServerBody.entries.name) })
export type ServerChange = v.InferOutput<typeof ServerChange>
