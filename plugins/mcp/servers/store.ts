import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { fitsTogether } from './addition.ts'
import { FROM_FILE } from './spec.ts'
import { headerName, scopes, SERVER_NAME, variable } from '../config.ts'
import type { McpObject, McpTool } from '../contract.ts'

/** What a server said at its last connection. */
export interface Listing {
  readonly serverInfo: McpObject
  readonly protocolVersion: string
  readonly instructions?: string | undefined
  readonly capabilities: McpObject
  readonly tools: readonly McpTool[]
}
const texts = v.array(v.string())
/** What the API can say of a server: a row with more was written by somebody else, and the rest of it does not count. */
const Spec = v.object({
  transport: v.picklist(['stdio', 'http', 'sse']),
  command: v.optional(v.string()),
  args: v.optional(texts),
  url: v.optional(v.string()),
  headers: v.optional(v.record(headerName, v.string())),
  env: v.optional(v.array(variable)),
  credentials: v.optional(v.array(variable)),
  variables: v.optional(v.record(variable, v.string())),
  network: v.optional(texts),
  timeout_secs: v.optional(v.pipe(v.number(), v.minValue(1))),
  lazy: v.optional(v.boolean()),
  enabled: v.optional(v.boolean()),
  oauth: v.optional(
    v.object({
      client_id: v.optional(v.string()),
      scopes: v.optional(scopes),
      grant: v.optional(v.picklist(['authorization_code', 'client_credentials'])),
    }),
  ),
})
/** The values that say nothing of what only the configuration file can say. */
const SAYS_NOTHING = new Set(['undefined', '"confined"', '[]', '{}', 'false'])
const FILE_ONLY = 'path read risk sampling tool_risk tool_timeout_secs tools trust trust_annotations write'.split(' ')
export type StoredSpec = v.InferOutput<typeof Spec>
const ServerRow = v.object({
  // Its folder has this name.
  name: v.pipe(v.string(), v.regex(SERVER_NAME)),
  spec: v.pipe(
    v.string(),
    v.transform(readOwnJson),
    v.looseObject(Spec.entries),
    v.check((spec) => fitsTogether(spec as StoredSpec)),
  ),
  origin: v.pipe(
    v.string(),
    v.check((origin) => origin !== FROM_FILE),
  ),
  revision: v.string(),
})
const AttemptRow = v.object({
  // Its folder is removed when the attempt is undone.
  name: v.pipe(v.string(), v.regex(SERVER_NAME)),
  url: v.nullable(v.string()),
  new_folder: v.number(),
  owner: v.string(),
})
/** A server that is being added or changed. */
export type Attempt = v.InferOutput<typeof AttemptRow>
const ListingRow = v.object({
  listing: v.pipe(
    v.string(),
    v.transform(readOwnJson),
    v.custom<Listing>((value) => typeof value === 'object' && value !== null),
  ),
})

export interface StoredServer {
  readonly name: string
  readonly spec: object
  readonly origin: string
  /** Differs with each change, also with one of its secrets only. */
  readonly revision: string
}
/** A server as its row says it. */
export interface ReadServer extends StoredServer {
  readonly spec: StoredSpec
}
export const newRevision = (): string => randomUUID()

export class McpStore {
  readonly #db: PluginDatabase
  readonly #tellChanged: () => readonly Statement[]
  readonly #log: Pick<Logger, 'warn'>
  readonly #listings: RowReader<typeof ListingRow>
  readonly #servers: RowReader<typeof ServerRow>
  readonly #attempts: RowReader<typeof AttemptRow>
  readonly #warned = new Set<string>()
  /** `tellChanged` is for each batch that changes servers: other daemons run them too. */
  constructor(db: PluginDatabase, tellChanged: () => readonly Statement[], log: Pick<Logger, 'error' | 'warn'>) {
    this.#log = log
    this.#db = db
    this.#tellChanged = tellChanged
    this.#listings = new RowReader({ table: 'mcp_tool_list', key: ['server'], schema: ListingRow, log })
    this.#servers = new RowReader({ table: 'mcp_server', key: ['name'], schema: ServerRow, log })
    this.#attempts = new RowReader({ table: 'mcp_server_attempt', key: ['name'], schema: AttemptRow, log })
  }

  async servers(): Promise<readonly ReadServer[]> {
    const rows = this.#servers.all(
      await this.#db.all`SELECT name, spec, origin, revision FROM mcp_server ORDER BY created_at, name`,
    )
    return rows.map((row) => ({ ...row, spec: this.#narrow(row) }))
  }
  #narrow({ name, spec, revision }: v.InferOutput<typeof ServerRow>): StoredSpec {
    const ignored = FILE_ONLY.filter((key) => !SAYS_NOTHING.has(JSON.stringify(spec[key]) ?? 'undefined'))
    if (ignored.length > 0 && !this.#warned.has(revision)) {
      this.#warned.add(revision)
      this.#log.warn(
        `the row of the MCP server "${name}" sets ${ignored.join(', ')}, which only the configuration file can: ` +
          'that part of it is ignored',
      )
    }
    return v.parse(Spec, spec)
  }
  /** Also when its row cannot be read. */
  async has(name: string): Promise<boolean> {
    return (await this.#db.one`SELECT name FROM mcp_server WHERE name = ${name}`) !== undefined
  }
  async find(name: string): Promise<ReadServer | undefined> {
    return (await this.servers()).find((row) => row.name === name)
  }
  insert({ name, spec, origin, revision }: StoredServer, at: string): readonly Statement[] {
    return [
      this.#db.sql`INSERT INTO mcp_server (name, spec, origin, revision, created_at)
        VALUES (${name}, ${JSON.stringify(spec)}, ${origin}, ${revision}, ${at})`,
      ...this.#tellChanged(),
    ]
  }
  replace({ name, spec, origin, revision }: StoredServer): readonly Statement[] {
    return [
      this.#db.sql`UPDATE mcp_server SET spec = ${JSON.stringify(spec)}, origin = ${origin}, revision = ${revision}
        WHERE name = ${name}`,
      ...this.#tellChanged(),
    ]
  }
  remove(name: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM mcp_server WHERE name = ${name}`,
      this.#db.sql`DELETE FROM mcp_tool_list WHERE server = ${name}`,
      ...this.#tellChanged(),
    ]
  }

  async attempts(): Promise<readonly Attempt[]> {
    return this.#attempts.all(await this.#db.all`SELECT name, url, new_folder, owner FROM mcp_server_attempt`)
  }
  beginAttempt({ name, url, new_folder: isNew, owner }: Attempt): Statement {
    return this.#db.sql`INSERT INTO mcp_server_attempt (name, url, new_folder, owner)
      VALUES (${name}, ${url}, ${isNew}, ${owner})`
  }
  endAttempt(name: string): Statement {
    return this.#db.sql`DELETE FROM mcp_server_attempt WHERE name = ${name}`
  }

  async listing(server: string, digest: string): Promise<Listing | undefined> {
    const row = this.#listings.one(
      await this.#db.one`SELECT server, listing FROM mcp_tool_list
        WHERE server = ${server} AND spec_digest = ${digest}`,
    )
    return row?.listing
  }
  async saveListing(server: string, digest: string, listing: Listing, at: string): Promise<void> {
    const text = JSON.stringify(listing)
    await this.#db.batch([
      this.#db.sql`DELETE FROM mcp_tool_list WHERE server = ${server}`,
      this.#db.sql`INSERT INTO mcp_tool_list (server, spec_digest, listing, listed_at)
        VALUES (${server}, ${digest}, ${text}, ${at})`,
    ])
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
