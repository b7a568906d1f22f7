import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const Row = v.pipe(
  v.object({
    turn_id: v.string(),
    session_id: v.string(),
    chain: v.pipe(v.string(), v.parseJson(), v.array(v.string())),
  }),
  v.transform(({ turn_id: turnId, session_id: sessionId, chain }) => ({ turnId, sessionId, chain })),
)
export interface OpenMessage {
  readonly turnId: string
  readonly sessionId: string
  readonly chain: readonly string[]
}

/** Messages whose answers have not ended: a turn that goes on after a restart is still for those who asked. */
export class OpenMessages {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  insert({ turnId, sessionId, chain }: OpenMessage): Statement {
    return this.#db.sql`INSERT INTO delegation_message (turn_id, session_id, chain)
      VALUES (${turnId}, ${sessionId}, ${JSON.stringify(chain)}) ON CONFLICT (turn_id) DO NOTHING`
  }
  async add(message: OpenMessage): Promise<void> {
    await this.#db.batch([this.insert(message)])
  }
  async list(): Promise<readonly OpenMessage[]> {
    return v.parse(v.array(Row), await this.#db.all`SELECT * FROM delegation_message`)
  }
  async remove(turnId: string): Promise<void> {
    await this.#db.run`DELETE FROM delegation_message WHERE turn_id = ${turnId}`
  }
}
