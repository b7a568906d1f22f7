import * as v from 'valibot'
import type { PluginDatabase } from 'svc/sdk'

/** A message that may hold what is looked for. */
export const FoundRow = v.object({
  id: v.string(),
  session_id: v.string(),
  agent_id: v.string(),
  label: v.nullable(v.string()),
  role: v.string(),
  blocks: v.string(),
  created_at: v.string(),
})
export type FoundRow = v.InferOutput<typeof FoundRow>
const PlaceRow = v.object({ turn_id: v.string(), seq: v.number() })
/** Of a message in the order of turns. */
export type Place = v.InferOutput<typeof PlaceRow>

/** Four of them are looked for by the database. */
export type Patterns = readonly [string, string, string, string]

/** Reads messages page by page, in the order of the index of turns. */
export class SearchStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }
  /** The last message of the page that begins before a place; `undefined` when it is the last page. */
  async endOfPage({ turn_id: turn, seq }: Place, size: number): Promise<Place | undefined> {
    const row = await this.#db.one`SELECT turn_id, seq FROM sessions_message WHERE (turn_id, seq) < (${turn}, ${seq})
      ORDER BY turn_id DESC, seq DESC LIMIT 1 OFFSET ${size - 1}`
    return v.parse(v.optional(PlaceRow), row)
  }
  /** Messages of persons and agents before one place and not before the other, whose stored text has the patterns. */
  async matches(before: Place, from: Place, agentId: string, patterns: Patterns): Promise<readonly FoundRow[]> {
    const [one, two, three, four] = patterns
    return v.parse(
      v.array(FoundRow),
      await this.#db.all`SELECT m.id, m.session_id, s.agent_id, s.label, m.role, m.blocks, m.created_at
        FROM sessions_message m JOIN sessions_session s ON s.id = m.session_id
        WHERE (m.turn_id, m.seq) < (${before.turn_id}, ${before.seq})
          AND (m.turn_id, m.seq) >= (${from.turn_id}, ${from.seq})
          AND m.role IN ('user', 'assistant') AND (m.turn_state IS NULL OR m.turn_state = 'failed')
          AND (${agentId} = '' OR s.agent_id = ${agentId})
          AND lower(m.blocks) LIKE ${one} AND lower(m.blocks) LIKE ${two}
          AND lower(m.blocks) LIKE ${three} AND lower(m.blocks) LIKE ${four}`,
    )
  }
}
