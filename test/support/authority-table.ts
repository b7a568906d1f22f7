import { effects } from '../../core/auth/authority.ts'
import type { AnyRoute, AnySocketRoute } from '../../core/sdk.ts'

const WHO = {
  read: 'everyone with a credential',
  conversation: 'everyone with a credential',
  own: 'everyone with a credential, about that credential only',
  lasting: 'the API key',
} as const
const WHAT = {
  read: 'It leaves nothing behind.',
  conversation:
    'A turn, a session, an attachment, the answer to one approval: it ends, and decides nothing that comes later. An approval is for one call with these very arguments; one for the whole conversation takes the API key.',
  own: 'The credential of the caller, and nobody else’s.',
  lasting:
    'It still holds when the caller’s credential is gone, or is gone itself: where conversations and keys go, what an agent is, knows and may do, settings, data deleted for good, the end of the daemon, and who else gets in.',
} as const

/** A conversation takes commands, and this one changes what an agent is. */
const MODEL = ' (`/model <name>`: the API key)'

/** `docs/authority.md`: who may call what, from the routes of a daemon. */
export function authorityTable(routes: readonly AnyRoute[], sockets: readonly AnySocketRoute[]): string {
  const rows = [
    ...routes.map(({ method, path, effect, effectOf, auth, summary }) => ({
      name: `${method} ${path.replaceAll(/(?:\*\*)?:(\w+)/g, '{$1}')}`,
      effect,
      note: `${auth === 'public' ? ' (without a credential)' : ''}${effectOf ? (effect === 'own' ? ' (of others: the API key)' : ' (what is to last: the API key)') : ''}${path.endsWith('/:id/commands') ? MODEL : ''}`,
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
    return `## ${effect}: ${WHO[effect]}\n\n${WHAT[effect]}\n\n| route | what it does |\n|---|---|\n${lines.join('\n')}\n`
  })
  return `# Who may call what

Every route declares what a call leaves behind, and who may call it follows from that: a paired device and somebody who signed in cannot do what
would outlast their credential. A route that declares nothing, as one of a plugin without types may, takes the API key. Without \`api_key\` in the configuration
nobody is told apart. This page is made from the routes: \`npx vitest run --config test/vitest.config.ts test/architecture/authority.test.ts -u\`.

${parts.join('\n')}`
}
