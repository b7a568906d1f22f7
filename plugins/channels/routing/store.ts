import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Conversation } from './conversations.ts'
import { MatchRule } from './match-rule.ts'

const BindingRow = v.object({
  id: v.string(),
  /** Name or id. */
  agent: v.string(),
  match_rule: v.pipe(v.string(), v.parseJson(), MatchRule),
})
export type Binding = Readonly<v.InferOutput<typeof BindingRow>>
const Session = v.object({ session_id: v.string() })
const Thinking = v.object({ enabled: v.pipe(v.union([v.number(), v.string()]), v.transform(Number)) })
const Chosen = v.object({ agent_id: v.string() })
const Owner = v.object({ agent_id: v.string(), until: v.string() })
const Chat = v.object({ chat: v.string(), thread: v.string(), kind: v.string(), title: v.string() })
export type KnownChat = v.InferOutput<typeof Chat>

/** Rows of bindings, conversations and chosen agents. */
export class RoutingStore {
  readonly #db: PluginDatabase
  readonly #bindings: RowReader<typeof BindingRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#bindings = new RowReader({ table: 'channels_binding', key: ['id'], schema: BindingRow, log })
  }

  /** Oldest first. */
  async bindings(): Promise<readonly Binding[]> {
    return this.#bindings.all(await this.#db.all`SELECT id, agent, match_rule FROM channels_binding ORDER BY id`)
  }
  insertBinding({ id, agent, match_rule: rule, created_at: at }: Binding & { readonly created_at: string }): Statement {
    return this.#db.sql`INSERT INTO channels_binding (id, agent, match_rule, created_at)
      VALUES (${id}, ${agent}, ${JSON.stringify(rule)}, ${at})`
  }
  removeBinding(id: string): Statement {
    return this.#db.sql`DELETE FROM channels_binding WHERE id = ${id}`
  }

  async session({ channel, account, chat, thread }: Conversation, agentId: string): Promise<string | undefined> {
    const row = await this.#db.one`SELECT session_id FROM channels_conversation
      WHERE channel = ${channel} AND account = ${account} AND chat = ${chat} AND thread = ${thread}
        AND agent_id = ${agentId}`
    return v.parse(v.optional(Session), row)?.session_id
  }
  /** Writes nothing when it is there already. */
  async insertConversation(
    { channel, account, chat, thread }: Conversation,
    facts: {
      readonly agentId: string
      readonly sessionId: string
      readonly kind: string
      readonly title: string
      readonly startedAt: string
    },
  ): Promise<void> {
    await this.#db.run`INSERT INTO channels_conversation (channel, account, chat, thread, agent_id, session_id, kind,
        title, started_at)
      VALUES (${channel}, ${account}, ${chat}, ${thread}, ${facts.agentId}, ${facts.sessionId}, ${facts.kind},
        ${facts.title}, ${facts.startedAt})
      ON CONFLICT (channel, account, chat, thread, agent_id) DO NOTHING`
  }
  moveConversation({ channel, account, chat, thread }: Conversation, agentId: string, sessionId: string): Statement {
    return this.#db.sql`UPDATE channels_conversation SET session_id = ${sessionId}
      WHERE channel = ${channel} AND account = ${account} AND chat = ${chat} AND thread = ${thread}
        AND agent_id = ${agentId}`
  }
  async chosenAgent({ channel, account, chat, thread }: Conversation): Promise<string | undefined> {
    const row = await this.#db.one`SELECT agent_id FROM channels_chosen_agent
      WHERE channel = ${channel} AND account = ${account} AND chat = ${chat} AND thread = ${thread}`
    return v.parse(v.optional(Chosen), row)?.agent_id
  }
  chooseAgent({ channel, account, chat, thread }: Conversation, agentId: string): Statement {
    return this.#db.sql`INSERT INTO channels_chosen_agent (channel, account, chat, thread, agent_id)
      VALUES (${channel}, ${account}, ${chat}, ${thread}, ${agentId})
      ON CONFLICT (channel, account, chat, thread) DO UPDATE SET agent_id = excluded.agent_id`
  }
  async thinking({ channel, account, chat, thread }: Conversation): Promise<boolean | undefined> {
    const row = await this.#db.one`SELECT enabled FROM channels_thinking
      WHERE channel = ${channel} AND account = ${account} AND chat = ${chat} AND thread = ${thread}`
    const found = v.parse(v.optional(Thinking), row)
    return found && found.enabled === 1
  }
  setThinking({ channel, account, chat, thread }: Conversation, isOn: boolean): Statement {
    return this.#db.sql`INSERT INTO channels_thinking (channel, account, chat, thread, enabled)
      VALUES (${channel}, ${account}, ${chat}, ${thread}, ${Number(isOn)})
      ON CONFLICT (channel, account, chat, thread) DO UPDATE SET enabled = excluded.enabled`
  }
  async threadOwner({ channel, account, chat, thread }: Conversation) {
    const row = await this.#db.one`SELECT agent_id, until FROM channels_thread_owner
      WHERE channel = ${channel} AND account = ${account} AND chat = ${chat} AND thread = ${thread}`
    return v.parse(v.optional(Owner), row)
  }
  claimThread({ channel, account, chat, thread }: Conversation, agentId: string, until: string): Statement {
    return this.#db.sql`INSERT INTO channels_thread_owner (channel, account, chat, thread, agent_id, until)
      VALUES (${channel}, ${account}, ${chat}, ${thread}, ${agentId}, ${until})
      ON CONFLICT (channel, account, chat, thread) DO UPDATE SET agent_id = excluded.agent_id, until = excluded.until`
  }
  deleteThreadOwners(before: string): Statement {
    return this.#db.sql`DELETE FROM channels_thread_owner WHERE until < ${before}`
  }
  /** Newest first. */
  async chatsOf(agentId: string, channel: string, account: string): Promise<readonly KnownChat[]> {
    const rows = await this.#db.all`SELECT chat, thread, kind, title FROM channels_conversation
      WHERE agent_id = ${agentId} AND channel = ${channel} AND account = ${account}
      ORDER BY started_at DESC LIMIT 1000`
    return v.parse(v.array(Chat), rows)
  }
  forgetAgent(agentId: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM channels_conversation WHERE agent_id = ${agentId}`,
      this.#db.sql`DELETE FROM channels_chosen_agent WHERE agent_id = ${agentId}`,
      this.#db.sql`DELETE FROM channels_thread_owner WHERE agent_id = ${agentId}`,
    ]
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
