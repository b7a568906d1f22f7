import { messageOf, stableId } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Sessions } from '../../sessions/contract.ts'
import type { SourceSession, Transcript } from '../model.ts'
import { isDamage } from '../source/open-source.ts'
import type { Run } from './run.ts'

export interface SessionImportDeps {
  readonly sessions: Sessions
  readonly db: PluginDatabase
}

const MAX_LABEL = 128
/** Warnings about conversations that are kept; the rest is counted. */
const MAX_WARNINGS = 20

/** Each conversation in one batch, with the times of its messages. */
export async function importSessions(run: Run, deps: SessionImportDeps): Promise<void> {
  let told = 0
  const labels = new Set<string>()
  for (const session of run.home.sessions)
    await run.attempt('session', session.label ?? session.key, async () => {
      const agent = run.agents.get(session.agent)
      if (!agent) return run.leave('session', session.key, `its agent "${session.agent}" is not here`)
      if ((await run.before('session', session.key, session.label ?? session.key)) !== undefined) return
      const transcript = await read(session)
      if (transcript.messages.length === 0) return run.leave('session', session.key, 'it has no messages of a person')
      for (const text of transcript.warnings) if (++told <= MAX_WARNINGS) run.warn(`session ${session.key}: ${text}`)
      if (run.isDryRun)
        return run.made(
          'session',
          session.label ?? session.key,
          `${agent.name}: ${transcript.messages.length} messages`,
        )
      const id = run.itemId('session', session.key)
      const label = await freeLabel(session, agent.id, labels, deps.sessions)
      await deps.db.batch([
        ...statementsOf(id, agent.id, label, transcript, deps.sessions),
        run.row('session', session.key, label ?? session.key, id),
      ])
      run.made('session', label ?? session.key, `${agent.name}: ${id}, ${transcript.messages.length} messages`)
    })
  if (told > MAX_WARNINGS) run.warn(`${told - MAX_WARNINGS} more warnings about sessions`)
}

async function read(session: SourceSession): Promise<Transcript> {
  try {
    return await session.read()
  } catch (error) {
    if (!isDamage(error)) throw error
    throw new Refusal('invalid_request', `it cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

/** A label finds one session of an agent. */
async function freeLabel(
  { label, agent }: SourceSession,
  agentId: string,
  taken: Set<string>,
  sessions: Sessions,
): Promise<string | undefined> {
  const text = label
    ?.replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, MAX_LABEL)
  if (text === undefined || text === '') return undefined
  const key = `${agent}\0${text}`
  if (taken.has(key) || (await sessions.findByLabel(agentId, text))) return undefined
  taken.add(key)
  return text
}

function statementsOf(
  id: string,
  agentId: string,
  label: string | undefined,
  { createdAt, messages }: Transcript,
  sessions: Sessions,
): readonly Statement[] {
  const statements = [...sessions.ensure(id, agentId, { at: createdAt, label })]
  let turnId = ''
  for (const [index, { role, blocks, at }] of messages.entries()) {
    const opens = role === 'user'
    if (opens) turnId = stableId('migrate-turn', id, String(index))
    const message = { id: stableId('migrate-message', id, String(index)), role, blocks, turnId, createdAt: at }
    statements.push(...sessions.append(id, message, { opens }))
  }
  return statements
}
