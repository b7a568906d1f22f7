import { effects } from '../../core/auth/authority.ts'
import type { AnyRoute, AnySocketRoute } from '../../core/sdk.ts'
import { wrap } from './wrap.ts'

const WHO = {
  read: 'everyone with a credential',
  conversation: 'everyone with a credential',
  own: 'everyone with a credential, about that credential only',
  lasting: 'the API key',
} as const
const WHAT = {
  read: 'It leaves nothing behind.',
  conversation:
    'A turn, a session, an attachment, the answer to one approval: it ends with the conversation and decides nothing ' +
    'later. An approval is for one call with exactly these arguments; one for the whole conversation requires the API key.',
  own: 'The credential of the caller, and no other.',
  lasting:
    'It outlasts the credential of the caller, or cannot be undone: the addresses that conversations and keys are sent ' +
    'to, what an agent is, knows and may do, settings, deleted data, the end of the daemon, and who else has access.',
} as const

/** What some calls of a route require. */
const EXCEPTIONS = { own: ' (of others: the API key)', other: ' (for lasting changes: the API key)' } as const
/** Commands are part of a conversation, but this one changes the agent. */
const MODEL = ' (`/model <name>`: the API key)'

/** The text of `docs/authority.md`, from the routes of a daemon. */
export function authorityTable(routes: readonly AnyRoute[], sockets: readonly AnySocketRoute[]): string {
  const rows = [
    ...routes.map(({ method, path, effect, effectOf, auth, summary }) => ({
      name: `${method} ${path.replaceAll(/(?:\*\*)?:(\w+)/g, '{$1}')}`,
      effect,
      note: [
        auth === 'public' ? ' (without a credential)' : '',
        effectOf ? EXCEPTIONS[effect === 'own' ? 'own' : 'other'] : '',
        path.endsWith('/:id/commands') ? MODEL : '',
      ].join(''),
      summary,
    })),
    ...sockets.map(({ path, effect, summary }) => ({
      name: `WebSocket ${path.replaceAll(/:(\w+)/g, '{$1}')}`,
      effect,
      note: MODEL,
      summary,
    })),
  ].toSorted(
    (a, b) => (a.name.split(' ')[1] ?? '').localeCompare(b.name.split(' ')[1] ?? '') || (a.name < b.name ? -1 : 1),
  )
  const parts = effects.map((effect) => {
    const lines = rows
      .filter((row) => row.effect === effect)
      .map(({ name, note, summary }) => `| \`${name}\`${note} | ${summary.replaceAll('|', '\\|')} |`)
    const table = ['| route | what it does |', '|---|---|', ...lines].join('\n')
    return `## ${effect}: ${WHO[effect]}\n\n${wrap(WHAT[effect])}\n\n${table}\n`
  })
  return `# Who may call what

Every route declares what a call leaves behind, which determines who may call it: a paired device and somebody who
signed in cannot make changes that outlast their credential. A route without a declaration requires the API key.
Without \`api_key\` in the configuration every caller is the operator.

This page is generated: \`npx vitest run --config test/vitest.config.ts test/architecture/authority.test.ts -u\`.

${parts.join('\n')}`
}
