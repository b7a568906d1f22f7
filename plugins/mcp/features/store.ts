import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const Pin = v.object({ tool: v.string(), fingerprint: v.string(), definition: v.string() })
/** What a tool said of itself when it was approved. */
export type Pin = v.InferOutput<typeof Pin>

export class PinStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }
  pin(server: string, { tool, fingerprint, definition }: Pin): Statement {
    return this.#db.sql`INSERT INTO mcp_tool_pin (server, tool, fingerprint, definition)
      VALUES (${server}, ${tool}, ${fingerprint}, ${definition})
      ON CONFLICT (server, tool) DO UPDATE SET fingerprint = ${fingerprint}, definition = ${definition}`
  }
  async pins(server: string): Promise<readonly Pin[]> {
    return v.parse(
      v.array(Pin),
      await this.#db.all`SELECT tool, fingerprint, definition FROM mcp_tool_pin WHERE server = ${server}`,
    )
  }
  async forget(server: string): Promise<void> {
    await this.#db.run`DELETE FROM mcp_tool_pin WHERE server = ${server}`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
